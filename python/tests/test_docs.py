"""The documentation is true: its Python runs, and it names what there is.

The blocks of one document run one after the other and share their names, as a reader reads them. What a block cannot
have of its own stands in a comment above it, ``<!-- provided: gateway, mail -->``, and is made here; addresses of
servers are replaced. Functions named ``test_…`` are called. A block below ``<!-- not run: why -->`` is only compiled.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import re
import uuid
from pathlib import Path
from typing import Any, Iterator

import psycopg
import pytest
import sqlalchemy
from celery.app.trace import build_tracer
from sqlalchemy.orm import sessionmaker

import semel
import semel.celery
import semel.testing
from semel._once import Terms
from semel.celery import _check
from semel.testing import Deliver

ROOT = Path(__file__).parents[2]
CELERY, PYTHON = ROOT / "docs" / "celery.md", ROOT / "docs" / "python.md"
DOCUMENTS = [ROOT / "python" / "README.md", CELERY, PYTHON, ROOT / "docs" / "migrate-python.md"]

_BLOCK = re.compile(r"(?:<!-- (provided|not run): ([^>]*?) -->\n)?```python\n(.*?)```", re.DOTALL)


class GatewayDown(Exception):
    pass


class CardRefused(Exception):
    pass


class Gateway:
    """A payment provider that de-duplicates, as most do; it counts over the processes of a crash test, too."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def charge(self, payment: Any, amount: Any, *, idempotency_key: str) -> str:
        (self._directory / f"{payment}-{idempotency_key}").touch()
        return f"receipt of {payment}"

    def charged(self, payment: Any) -> int:
        return len(list(self._directory.glob(f"{payment}-*")))


class Mail:
    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, *what: Any) -> None:
        self.sent.append(what)


class Reader:
    """Runs the blocks of one document."""

    def __init__(self, database: str, directory: Path, deliver: Deliver) -> None:
        self._database = database
        self._deliver = deliver
        gateway = Gateway(directory)
        with psycopg.connect(database) as connection:
            connection.execute("CREATE TABLE stock (n int); INSERT INTO stock VALUES (10)")
        engine = sqlalchemy.create_engine(
            database.replace("postgres://", "postgresql+psycopg://"), poolclass=sqlalchemy.NullPool
        )
        self._provided: dict[str, Any] = {
            "gateway": gateway,
            "charged": gateway.charged,
            "mail": Mail(),
            "GatewayDown": GatewayDown,
            "CardRefused": CardRefused,
            "Session": sessionmaker(engine),
            "UPDATE_STOCK": sqlalchemy.text("UPDATE stock SET n = n - 1"),
        }
        self.names: dict[str, Any] = {"__name__": f"document_{uuid.uuid4().hex}"}

    def read(self, kind: str, comment: str, block: str) -> None:
        code = compile(self._replaced(block), self.names["__name__"], "exec")
        if kind == "not run":
            return
        for name in re.findall(r"\w+", comment) if kind else ():
            if name in self._provided:
                self.names[name] = self._provided[name]
            if name == "letter":
                self._leave_a_letter()
        tests = {name for name in self.names if name.startswith("test_")}
        exec(code, self.names)
        for name in sorted(name for name in self.names if name.startswith("test_") and name not in tests):
            self.names[name](deliver=self._deliver)

    def _replaced(self, block: str) -> str:
        block = block.replace("postgres://semel@db/semel", self._database)
        return block.replace("redis://broker/0", "memory://")

    def _leave_a_letter(self) -> None:
        """By a message that has no key, delivered as a worker delivers it."""
        app = self.names["app"]
        task = next(task for task in app.tasks.values() if getattr(task, "once", None) is not None)
        request = {"id": uuid.uuid4().hex, "args": ["", "9"], "kwargs": {}, "delivery_info": {"routing_key": "celery"}}
        build_tracer(task.name, task, app=app)(request["id"], ("", "9"), {}, request)


@pytest.fixture
def own_apps(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tasks of a document's app are not to appear in the apps of other tests."""
    from celery import _state

    monkeypatch.setattr(_state, "_on_app_finalizers", set(_state._on_app_finalizers))
    default = _state.default_app
    yield
    _state.set_default_app(default)
    _state._tls.current_app = None


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.name))
def test_the_python_of_a_document_runs(
    path: Path, database: str, tmp_path: Path, deliver: Deliver, own_apps: None
) -> None:
    effects = tmp_path / "effects"
    effects.mkdir()
    reader = Reader(database, effects, deliver)
    blocks = _BLOCK.findall(path.read_text())
    assert blocks
    said = io.StringIO()
    for kind, comment, block in blocks:
        with contextlib.redirect_stdout(said):
            try:
                reader.read(kind, comment, block)
            except Exception as error:
                raise AssertionError(f"{path.name}: this block does not run: {error!r}\n{block}") from error


def test_what_the_readme_says_of_its_first_calls(database: str, tmp_path: Path, deliver: Deliver) -> None:
    _, _, first = _BLOCK.findall(DOCUMENTS[0].read_text())[0]
    reader = Reader(database, tmp_path, deliver)
    reader.read("", "", first)
    said = re.search(r"charge\.outcome\(.*\) +# (.*)", first)
    assert said is not None and repr(reader.names["charge"].outcome("A-1", 900)) == said[1]


def names_of(document: str) -> set[str]:
    """What stands in backticks, beside the blocks."""
    code = re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", document, flags=re.DOTALL))
    return {name for piece in code for name in re.findall(r"\w+", piece)}


def test_the_reference_names_all_there_is() -> None:
    named = names_of(PYTHON.read_text())
    parameters = {name for name in inspect.signature(Terms.__init__).parameters if name != "self"}
    parameters |= {name for name in inspect.signature(semel.Semel.__init__).parameters if name != "self"}
    assert (set(semel.__all__) | parameters | set(semel.testing.__all__)) - named == set()
    assert set(semel.celery.__all__) - names_of(CELERY.read_text()) == set()


def test_the_reference_gives_the_default_of_each_term() -> None:
    document = PYTHON.read_text()
    for signature in (inspect.signature(Terms.__init__), inspect.signature(semel.Semel.__init__)):
        for parameter in signature.parameters.values():
            if isinstance(parameter.default, (str, int)) and not isinstance(parameter.default, bool):
                written = repr(parameter.default).replace("'", '"')
                assert f"| `{parameter.name}` | `{written}` |" in document, parameter


def test_each_error_has_its_line() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PYTHON.read_text(), re.MULTILINE)
    classes = {name: getattr(semel, name) for name in semel.__all__ if inspect.isclass(getattr(semel, name))}
    errors = {name for name, kind in classes.items() if issubclass(kind, Exception)}
    assert errors - set(rows) == set()


def _said_by_check() -> list[list[str]]:
    """The fixed words of each finding, from the source: a new one is then not forgotten here."""
    calls = [node for node in ast.walk(ast.parse(inspect.getsource(_check))) if isinstance(node, ast.Call)]
    found = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in ("_error", "_warning")]
    return [_fixed_words(call.args[0]) for call in found]


def _fixed_words(text: ast.expr) -> list[str]:
    parts = [part.value for part in ast.walk(text) if isinstance(part, ast.Constant)]
    return [_plain(part) for part in parts if isinstance(part, str) and len(part.strip()) > 8]


def _plain(text: str) -> str:
    return " ".join(text.replace("`", "").split())


def test_each_finding_of_the_check_stands_in_the_document() -> None:
    document = _plain(CELERY.read_text())
    findings = _said_by_check()
    assert len(findings) >= 13 and all(findings)
    assert [words for words in findings if not all(word in document for word in words)] == []


@pytest.mark.parametrize(
    "path", [*DOCUMENTS, ROOT / "docs" / "decisions" / "0018-python.md"], ids=lambda path: str(path.name)
)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
        assert (path.parent / target).exists(), target


def test_reasons_of_letters_are_all_told() -> None:
    named = names_of(CELERY.read_text())
    assert {"parked", "failed", "mismatched", "invalid"} <= named
