"""What is wrong with a charter, or with the wish for one, in both languages. Each says what to do."""

from __future__ import annotations

from typing import Final

from greenroom.app.organisation.names import in_language

NAMES_ZH: Final = "名称最多64个字符，由字母、数字、-、_和.组成。"
WORDS: Final = {
    "none_here": {
        "en": "There is no organisation here. `greenroom team new NAME` makes one.",
        "zh": "这里没有组织。`greenroom team new 名称`可以新建。",
    },
    "several_here": {
        "en": "There are {count} organisations here. Say which: {known}.",
        "zh": "这里有{count}个组织。请指明：{known}。",
    },
    "unknown": {"en": "There is no organisation {name!r} here.", "zh": "这里没有组织{name!r}。"},
    "meant": {"en": "Did you mean {near!r}?", "zh": "您是指{near!r}吗？"},
    "there_are": {"en": "There are: {known}.", "zh": "现有：{known}。"},
    "write_it": {"en": "`greenroom team new {name}` writes one.", "zh": "`greenroom team new {name}`可以新建。"},
    "not_begun": {
        "en": "The organisation {name!r} has not begun yet. Begin it: `greenroom team start {name}`.",
        "zh": "组织{name!r}尚未开始。启动：`greenroom team start {name}`。",
    },
    "no_language": {
        "en": "{language!r} is no language that an organisation speaks. There are: {known}.",
        "zh": "组织不支持语言{language!r}。现有：{known}。",
    },
    "exists": {
        "en": "There is an organisation {name!r} already, in {path}. Edit that file, or choose another name.",
        "zh": "组织{name!r}已存在：{path}。请编辑该文件，或换一个名称。",
    },
    "alike": {
        "en": "{name!r} could be taken for the organisation {other!r}, which is there already. Choose another name.",
        "zh": "{name!r}容易与已有的组织{other!r}混淆。请换一个名称。",
    },
    "bad_team": {"en": "{name} cannot be an organisation's name.", "zh": "{name}不能用作组织名称。"},
    "bad_person": {"en": "{name} cannot be a person's name.", "zh": "{name}不能用作人名。"},
    "bad_model": {"en": "{name} cannot be a model's name.", "zh": "{name}不能用作模型名称。"},
    "must_be": {
        "en": "It must be {unfit}.",
        "zh": NAMES_ZH,
    },
    "must_be_model": {"en": "It must be {unfit}.", "zh": "请写设置中的模型名称，或“提供方:模型”。"},
    "a_link": {
        "en": "{path} is a link that leads out of the project, and is not read. Put the file itself there.",
        "zh": "{path}是指向项目之外的链接，不予读取。请把文件本身放在那里。",
    },
    "is_gone": {
        "en": "{path} is gone. `greenroom team new {name}` writes it again.",
        "zh": "{path}已不存在。`greenroom team new {name}`可以重新生成。",
    },
    "unreadable": {
        "en": "{fault}",
        "zh": "{path}无法读取{place}：它应是UTF-8编码的TOML文件。请在那里修正。",
    },
    "place": {"en": "", "zh": "（第{line}行第{column}列）"},
    "unfit_language": {"en": "{fault}", "zh": "{path}: `language`必须是en或zh。"},
    "unfit_people": {"en": "{fault}", "zh": '{path}: `people`必须是人名的列表，如["ann", "ben"]。' + NAMES_ZH},
    "unfit_person": {
        "en": "{fault}",
        "zh": "{path}: [person.名字]下可以写`role`和`profile`（文字）以及`tools`（列表）。",
    },
    "unfit_managers": {"en": "{fault}", "zh": "{path}: `managers`必须是Agent名称的列表。" + NAMES_ZH},
    "unfit_blueprints": {"en": "{fault}", "zh": "{path}: `blueprints`必须是Agent名称的列表。" + NAMES_ZH},
    "unfit_model": {"en": "{fault}", "zh": "{path}: `model`必须是设置中的模型名称，或“提供方:模型”。"},
    "unfit_limits": {
        "en": "{fault}",
        "zh": "{path}: [limits]下可以写`cost`（美元）、`tokens`（整数）和`time`（秒数，或如15m、2h），都不能为负。",
    },
    "no_key": {
        "en": "an organisation has no `{key}`. {meant}",
        "zh": "组织没有`{key}`这一项。现有：{known}。",
    },
    "misnamed": {
        "en": "{name!r} cannot be an organisation's name. Rename the file: it must be {unfit}.",
        "zh": "{name!r}不能用作组织名称。请重命名文件：最多64个字母、数字、-、_和.。",
    },
    "twice": {"en": "{name!r} is named twice. Name each person once.", "zh": "{name!r}写了两次。每人请只写一次。"},
    "with_person": {"en": "Say it with --person NAME.", "zh": "请用--person说明。"},
    "mixed": {
        "en": "{name!r} mixes letters of scripts that look alike. Write this person's name in one of them.",
        "zh": "{name!r}混用了外形相似的不同文字的字母。请只用其中一种书写人名。",
    },
    "also_manages": {
        "en": "{name!r} is a person and a manager. Give one of them another name.",
        "zh": "{name!r}既是人又是管理者。请给其中一个换个名字。",
    },
    "of_the_house": {
        "en": "{name!r} is what the house calls one of its own. Give this person another name.",
        "zh": "{name!r}是系统自用的名称。请给此人换个名字。",
    },
    "a_command": {
        "en": "{name!r} is a command or a task. Give this person another name.",
        "zh": "{name!r}是命令或任务编号。请给此人换个名字。",
    },
    "an_agent": {
        "en": "{name!r} is an agent already. Give this person another name.",
        "zh": "{name!r}已是Agent的名称。请给此人换个名字。",
    },
    "taken_for": {
        "en": "{other!r} and {name!r} could be taken for each other. Give one of them another name.",
        "zh": "{other!r}和{name!r}容易混淆。请给其中一个换个名字。",
    },
    "nobody": {
        "en": 'nobody belongs to it. Name at least one person: `people = ["ann"]`.',
        "zh": '没有成员。请至少写一个人：`people = ["ann"]`。',
    },
    "no_managers": {
        "en": 'it has no manager. Leave `managers` out, or name one: `managers = ["{manager}"]`.',
        "zh": '没有管理者。请删去`managers`，或写一个：`managers = ["{manager}"]`。',
    },
    "describes_nobody": {
        "en": "[person.{name}] describes nobody: {name!r} is not among `people`.",
        "zh": "[person.{name}]没有对应的人：`people`中没有{name!r}。",
    },
    "no_manager": {
        "en": "nobody is called {name!r}, so it cannot manage. Who can manage here: {known}.",
        "zh": "没有名为{name!r}的Agent，无法担任管理者。这里可以担任管理者的有：{known}。",
    },
    "manages_not": {
        "en": "the agent {name!r} is no manager. Write `manager: true` into its file.",
        "zh": "Agent {name!r}不是管理者。请在其文件中写入`manager: true`。",
    },
    "no_blueprint": {
        "en": "`blueprints` names {name!r}, and nobody is called so. There are: {known}.",
        "zh": "`blueprints`中的{name!r}不存在。现有：{known}。",
    },
    "manages": {
        "en": "`blueprints` names {name!r}, who manages: managers make no managers. Name it in `managers`.",
        "zh": "`blueprints`中的{name!r}是管理者，而管理者不能创建管理者。请写入`managers`。",
    },
    "no_model": {
        "en": "`model` names {name!r}. {why}",
        "zh": "`model`中的{name!r}不存在。`greenroom models list`列出可用的模型。",
    },
    "no_tool": {
        "en": "`tools` of [person.{who}] names {name!r}. {why}",
        "zh": "[person.{who}]的`tools`中的{name!r}不存在。`greenroom tools list`列出全部工具。",
    },
}


def said(what: str, language: str, /, **known: object) -> str:
    """One sentence."""
    return in_language(WORDS[what], language).format(**known)
