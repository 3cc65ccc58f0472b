"""Six Python projects from PyPI."""

from tests.projects.project import IMPORTS_YOUR_FILES, Change, Edit, Project

PYTEST = (".venv/bin/python", "-m", "pytest", "-q")
IGNORE = "__pycache__/\n*.egg-info/\n.pytest_cache/\n.tox/\ndist/\n"

ITSDANGEROUS = Project(
    name="itsdangerous",
    registry="pypi",
    version="2.2.0",
    kind="src, editable; pytest; tox, mypy, pyright, ruff not installed",
    test=PYTEST,
    packages=("pytest==8.2.2", "freezegun==1.5.1", "flit_core==3.9.0"),
    editable=True,
    brought={".gitignore": IGNORE + ".venv/\n"},
    landlock=IMPORTS_YOUR_FILES,
    right=Change(
        "Add want_str to the encoding module, the counterpart of want_bytes, with a test.",
        (
            Edit(
                file="src/itsdangerous/encoding.py",
                search="def base64_encode(string: str | bytes) -> bytes:\n",
                replace="""def want_str(
    s: str | bytes, encoding: str = "utf-8", errors: str = "strict"
) -> str:
    if isinstance(s, bytes):
        s = s.decode(encoding, errors)

    return s


def base64_encode(string: str | bytes) -> bytes:
""",
            ),
            Edit(
                file="tests/test_itsdangerous/test_want_str.py",
                replace="""import pytest

from itsdangerous.encoding import want_str


@pytest.mark.parametrize("value", ("ma\u00f1ana", "ma\u00f1ana".encode()))
def test_want_str(value):
    assert want_str(value) == "ma\u00f1ana"
""",
            ),
        ),
    ),
    breaking=Change(
        "Make int_to_bytes simpler.",
        (
            Edit(
                file="src/itsdangerous/encoding.py",
                search='    return _int_to_bytes(num).lstrip(b"\\x00")\n',
                replace="    return _int_to_bytes(num)\n",
            ),
        ),
    ),
)

HUMANIZE = Project(
    name="humanize",
    registry="pypi",
    version="4.11.0",
    kind="src, editable; pytest; git-ignored _version.py and *.mo; pre-commit, mypy, ruff not installed",
    test=PYTEST,
    packages=(
        "pytest==8.2.2",
        "pytest-cov==5.0.0",
        "freezegun==1.5.1",
        "editables==0.5",
        "hatchling==1.27.0",
        "hatch-vcs==0.4.0",
    ),
    editable=True,
    landlock=IMPORTS_YOUR_FILES,
    right=Change(
        "Let natural_list take another word than 'and', with a test.",
        (
            Edit(
                file="src/humanize/lists.py",
                search="def natural_list(items: list[Any]) -> str:\n",
                replace='def natural_list(items: list[Any], conjunction: str = "and") -> str:\n',
            ),
            Edit(
                file="src/humanize/lists.py",
                search="        items (list): An iterable of items.\n",
                replace="        items (list): An iterable of items.\n"
                "        conjunction (str): The word before the last item.\n",
            ),
            Edit(
                file="src/humanize/lists.py",
                search='        return f"{str(items[0])} and {str(items[1])}"\n',
                replace='        return f"{str(items[0])} {conjunction} {str(items[1])}"\n',
            ),
            Edit(
                file="src/humanize/lists.py",
                search='        return ", ".join(str(item) for item in items[:-1]) + f" and {str(items[-1])}"\n',
                replace='        head = ", ".join(str(item) for item in items[:-1])\n'
                '        return f"{head} {conjunction} {str(items[-1])}"\n',
            ),
            Edit(
                file="tests/test_lists.py",
                search="    assert humanize.natural_list(*test_args) == expected\n",
                replace="""    assert humanize.natural_list(*test_args) == expected


def test_natural_list_with_another_word() -> None:
    assert humanize.natural_list(["a", "b"], "or") == "a or b"
    assert humanize.natural_list(["a", "b", "c"], conjunction="or") == "a, b or c"
""",
            ),
        ),
    ),
    breaking=Change(
        "Put a comma before 'and' in natural_list.",
        (
            Edit(
                file="src/humanize/lists.py",
                search='for item in items[:-1]) + f" and {str(items[-1])}"\n',
                replace='for item in items[:-1]) + f", and {str(items[-1])}"\n',
            ),
        ),
    ),
)

MORE_ITERTOOLS = Project(
    name="more-itertools",
    registry="pypi",
    version="10.2.0",
    kind="flat, not installed; unittest; Makefile, tox, black, flake8, mypy not installed",
    test=(".venv/bin/python", "-m", "unittest", "-q"),
    right=Change(
        "Give all_equal a key function, with tests.",
        (
            Edit(
                file="more_itertools/recipes.py",
                search="def all_equal(iterable):\n",
                replace="def all_equal(iterable, key=None):\n",
            ),
            Edit(
                file="more_itertools/recipes.py",
                search="""        >>> all_equal('aaab')
        False

    \"""
    g = groupby(iterable)
""",
                replace="""        >>> all_equal('aaab')
        False

    With a *key* function the results of the function are compared.

        >>> all_equal('AaaA', key=str.casefold)
        True

    \"""
    g = groupby(iterable, key)
""",
            ),
            Edit(
                file="more_itertools/recipes.pyi",
                search="def all_equal(iterable: Iterable[_T]) -> bool: ...\n",
                replace="def all_equal(\n    iterable: Iterable[_T], key: Callable[[_T], object] | None = ...\n"
                ") -> bool: ...\n",
            ),
            Edit(
                file="tests/test_recipes.py",
                search="class QuantifyTests(TestCase):\n",
                replace='''class AllEqualKeyTests(TestCase):
    """Tests for ``all_equal()`` with a key"""

    def test_key(self):
        """Results of the key function are compared"""
        self.assertTrue(mi.all_equal('AaaA', key=str.lower))
        self.assertFalse(mi.all_equal('AaaB', key=str.lower))


class QuantifyTests(TestCase):
''',
            ),
        ),
    ),
    breaking=Change(
        "Let take return one item more.",
        (
            Edit(
                file="more_itertools/recipes.py",
                search="    return list(islice(iterable, n))\n\n\ndef tabulate",
                replace="    return list(islice(iterable, n + 1))\n\n\ndef tabulate",
            ),
        ),
    ),
)

PYJWT = Project(
    name="pyjwt",
    registry="pypi",
    version="2.8.0",
    kind="flat, editable; pytest in tox.ini; pre-commit, mypy, flake8 not installed",
    test=PYTEST,
    packages=("pytest==6.2.5", "setuptools==69.5.1", "wheel==0.43.0"),
    editable=True,
    brought={".gitignore": IGNORE + ".venv/\n.mypy_cache/\n"},
    right=Change(
        "Add is_base64url to jwt.utils, with a test.",
        (
            Edit(
                file="jwt/utils.py",
                search="def to_base64url_uint(val: int) -> bytes:\n",
                replace="""_BASE64URL = re.compile(rb"[A-Za-z0-9_-]*")


def is_base64url(value: Union[bytes, str]) -> bool:
    return _BASE64URL.fullmatch(force_bytes(value)) is not None


def to_base64url_uint(val: int) -> bytes:
""",
            ),
            Edit(
                file="tests/test_base64url.py",
                replace="""from jwt.utils import base64url_encode, is_base64url


def test_encoded_bytes_are_base64url():
    assert is_base64url(base64url_encode(bytes(range(256))))


def test_padding_is_not_base64url():
    assert not is_base64url("AA==")
""",
            ),
        ),
    ),
    breaking=Change(
        "Encode zero as one byte.",
        (
            Edit(
                file="jwt/utils.py",
                search='        int_bytes = b"\\x00"\n',
                replace='        int_bytes = b"\\x00\\x00"\n',
            ),
        ),
    ),
)

TABULATE = Project(
    name="tabulate",
    registry="pypi",
    version="0.9.0",
    kind="flat, not installed; pytest; git-ignored version.py; tox, pre-commit not installed",
    test=PYTEST,
    packages=("pytest==8.2.2",),
    tracked=(".gitignore", ".pre-commit-config.yaml", ".circleci"),
    right=Change(
        "Add tsv_format, the format of tab-separated values, with a test.",
        (
            Edit(
                file="tabulate/__init__.py",
                search="def _isnumber_with_thousands_separator(string):\n",
                replace='''def tsv_format():
    """Construct a TableFormat with columns separated by tabs.

    >>> tabulate([["a", 1]], tablefmt=tsv_format()) == 'a\\\\t1'
    True

    """
    return simple_separated_format("\\t")


def _isnumber_with_thousands_separator(string):
''',
            ),
            Edit(
                file="test/test_tsv.py",
                replace='''"""Tests of the format of tab-separated values."""

from tabulate import tabulate, tsv_format

from common import assert_equal


def test_tsv_format():
    "Output: tab-separated values"
    table = [["foo", 1], ["spam", 23]]
    assert_equal("foo \\t 1\\nspam\\t23", tabulate(table, tablefmt=tsv_format()))
''',
            ),
        ),
    ),
    breaking=Change(
        "Add some space around separators.",
        (
            Edit(
                file="tabulate/__init__.py",
                search="""        datarow=DataRow("", separator, ""),
        padding=0,
        with_header_hide=None,
    )


def _isnumber""",
                replace="""        datarow=DataRow("", separator, ""),
        padding=1,
        with_header_hide=None,
    )


def _isnumber""",
            ),
        ),
    ),
)

STAMINA = Project(
    name="stamina",
    registry="pypi",
    version="24.2.0",
    kind="src, editable; pytest; .venv NOT ignored; nox, pre-commit, mypy, ruff not installed",
    test=PYTEST,
    packages=(
        "pytest==8.2.2",
        "anyio==4.4.0",
        "tenacity==8.4.1",
        "editables==0.5",
        "hatchling==1.27.0",
        "hatch-vcs==0.4.0",
        "hatch-fancy-pypi-readme==24.1.0",
    ),
    editable=True,
    landlock=IMPORTS_YOUR_FILES,
    right=Change(
        "Add toggle_active, which returns the new state, with a test.",
        (
            Edit(
                file="src/stamina/_config.py",
                search="    CONFIG.is_active = bool(active)\n",
                replace='''    CONFIG.is_active = bool(active)


def toggle_active() -> bool:
    """
    Activate retrying if it is inactive, deactivate it otherwise.

    Returns:
        Whether retrying is active now.
    """
    CONFIG.is_active = not CONFIG.is_active

    return CONFIG.is_active
''',
            ),
            Edit(
                file="tests/test_config.py",
                search="def test_config_init_concurrently():\n",
                replace='''def test_toggle_active():
    """
    toggle_active switches and returns the new state.
    """
    assert not toggle_active()
    assert not is_active()
    assert toggle_active()
    assert is_active()


def test_config_init_concurrently():
''',
            ),
            Edit(
                file="tests/test_config.py",
                search="from stamina._config import _Config\n",
                replace="from stamina._config import _Config, toggle_active\n",
            ),
        ),
    ),
    breaking=Change(
        "Initialise the hooks without a second look.",
        (
            Edit(
                file="src/stamina/_config.py",
                search="            if self._get_on_retry == self._init_on_first_retry:\n",
                replace="            if self._get_on_retry:\n",
            ),
        ),
    ),
)

PROJECTS = (ITSDANGEROUS, HUMANIZE, MORE_ITERTOOLS, PYJWT, TABULATE, STAMINA)
