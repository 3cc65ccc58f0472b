"""What a verdict's findings say to people, in English and Chinese: one sentence for each code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from greenroom.app.jobs.verdict import Code, Finding

FEW: Final = 5
"""Names in a sentence."""

EN: Final[Mapping[Code, str]] = {
    "new_failures": "{check}: {count} newly failing: {tests}",
    "cannot_run_now": "{check} ran before the change and cannot run now. {why}",
    "no_checks": "no checks were found, so nothing could judge the change",
    "no_test_judged": "no test could judge the change",
    "tests_altered": "the change alters tests that would fail: {tests} (changed: {paths})",
    "imports_elsewhere": "the tests import your files, not the change: {check} imports {why}",
    "nothing_changed": "no file was changed. If you want an answer only, use --question",
    "in_place": "it worked in your own files (--in-place), where no checks run",
    "not_judged": "the run ended before its change was judged",
    "changed_later": "files were changed after the last check",
    "stored": "{why}",
    "does_not_judge": "{check} does not judge: {why}",
    "fails_as_before": "{check}: {count} fail as before the change",
    "passes_now": "{check} passes now",
    "flaky": "{check}: flaky, failed once and passed when run again: {tests}",
    "tests_changed": "changed tests or settings of checks: {paths}",
    "tests_gone": "{check}: {count} tests of before are gone: {tests}",
    "uncovered": "{check}: the coverage threshold is not reached; that is not a test",
    "not_rebuilt": "built files are not rebuilt for: {paths}. Set `setup` below [workspace] to build them",
    "not_delivered": "not delivered: {paths} ({why})",
    "not_in_change": "the agent names files that the change does not have: {paths}",
    "stopped": "stopped in the background before the checks ran: {paths}",
}
ZH: Final[Mapping[Code, str]] = {
    "new_failures": "{check}：新增 {count} 个失败：{tests}",
    "cannot_run_now": "{check} 在修改前可以运行，现在无法运行。{why}",
    "no_checks": "没有找到检查，因此无法判断这次修改",
    "no_test_judged": "没有测试能够判断这次修改",
    "tests_altered": "这次修改改动了会失败的测试：{tests}（改动：{paths}）",
    "imports_elsewhere": "测试导入的是你的文件而不是这次修改：{check} 导入 {why}",
    "nothing_changed": "没有改动任何文件。如果只想要答案，请使用 --question",
    "in_place": "它直接在你的文件中工作（--in-place），没有运行检查",
    "not_judged": "运行在判断修改之前就结束了",
    "changed_later": "最后一次检查之后文件又有改动",
    "stored": "{why}",
    "does_not_judge": "{check} 不参与判断：{why}",
    "fails_as_before": "{check}：{count} 个与修改前一样失败",
    "passes_now": "{check} 现在通过",
    "flaky": "{check}：不稳定，失败一次后重跑通过：{tests}",
    "tests_changed": "改动的测试或检查设置：{paths}",
    "tests_gone": "{check}：原有的 {count} 个测试不见了：{tests}",
    "uncovered": "{check}：未达到覆盖率阈值；这不是测试",
    "not_rebuilt": "未重新构建：{paths}。请在 [workspace] 下设置 `setup` 来构建",
    "not_delivered": "未交付：{paths}（{why}）",
    "not_in_change": "智能体提到的文件不在这次修改中：{paths}",
    "stopped": "检查前在后台停止：{paths}",
}
WHY_LEFT: Final[Mapping[str, str]] = {
    "too_large": "too large",
    "unreadable": "not readable",
    "repository": "another repository",
    "submodule": "in a submodule",
    "other": "not a regular file",
    "secret": "not in git, and its name says that it is a secret",
    "environment": "a virtual environment or node_modules",
}


def sentence(finding: Finding, language: str = "en") -> str:
    """One finding in a sentence."""
    words = (ZH if language == "zh" else EN)[finding.code]
    why = WHY_LEFT.get(finding.why, finding.why) if finding.code == "not_delivered" else finding.why
    text = words.format(
        check=finding.check,
        count=finding.count or len(finding.tests),
        tests=shorten(finding.tests),
        paths=shorten(finding.paths),
        why=why,
    )
    return one_line(text)


def shorten(names: Sequence[str]) -> str:
    """The first of these names, and how many more there are."""
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return ", ".join(map(one_line, names[:FEW])) + more


def one_line(text: str) -> str:
    """A text on one line: a name may hold a line end, and would look like a line of ours."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)
