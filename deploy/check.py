"""Checks the files of this directory; `deploy/check` starts it with what it needs."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import check_jsonschema
import googleapiclient
import kubernetes_validate
import yaml
from jsonschema import Draft202012Validator
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for

HERE = Path(__file__).parent
KUBERNETES = "1.37"
CLOUD_RUN = Path(googleapiclient.__file__).parent / "discovery_cache/documents/run.v1.json"
COMPOSE = Path(check_jsonschema.__file__).parent / "builtin_schemas/vendor/compose-spec.json"

# How exposed systemd may find the unit, from 0 to 100.
EXPOSURE_MAX = 20


def main() -> int:
    semel = Path(sys.argv[1]).resolve()
    checks = [*cloud_run(), *kubernetes(), *compose(), *systemd(), *dockerfile(), *configurations(semel)]
    for what, wrong in checks:
        print(f"{'ok   ' if wrong is None else 'WRONG'}  {what}{'' if wrong is None else f': {wrong}'}")
    return 1 if any(wrong for _, wrong in checks) else 0


Checked = Iterator[tuple[str, str | None]]


def cloud_run() -> Checked:
    schemas = json.loads(CLOUD_RUN.read_text())["schemas"]
    definitions = {name: strict(schema) for name, schema in schemas.items()}
    validator = Draft202012Validator({"$ref": "#/$defs/Service", "$defs": definitions})
    for path in sorted(HERE.glob("cloud-run/*.yaml")):
        yield f"{path.name} by the schema of Cloud Run", first_error(validator, yaml.safe_load(path.read_text()))


def strict(schema: dict) -> dict:
    """A schema of Google's discovery format as a JSON schema in which unknown members are mistakes."""
    if "$ref" in schema:
        return {"$ref": f"#/$defs/{schema['$ref']}"}
    kept = {name: schema[name] for name in ("type", "enum") if name in schema}
    if schema.get("type") == "any":
        return {}
    if "properties" in schema:
        kept["properties"] = {name: strict(member) for name, member in schema["properties"].items()}
        kept["additionalProperties"] = False
    elif "additionalProperties" in schema:
        kept["additionalProperties"] = strict(schema["additionalProperties"])
    if "items" in schema:
        kept["items"] = strict(schema["items"])
    return kept


def kubernetes() -> Checked:
    for path in sorted(HERE.glob("kubernetes/*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            wrong = None
            try:
                kubernetes_validate.validate(document, KUBERNETES, strict=True)
            except kubernetes_validate.ValidationError as error:
                wrong = error.message
            yield f"{path.name}, {document['kind']}, by the schema of Kubernetes {KUBERNETES}", wrong


def compose() -> Checked:
    schema = json.loads(COMPOSE.read_text())
    validator = validator_for(schema)(schema)
    for path in sorted(HERE.glob("compose/compose.yaml")):
        yield f"{path.name} by the schema of Compose", first_error(validator, yaml.safe_load(path.read_text()))


def first_error(validator: Validator, document: object) -> str | None:
    for error in validator.iter_errors(document):
        return f"{error.json_path}: {error.message}"
    return None


def systemd() -> Checked:
    if shutil.which("systemd-analyze") is None:
        yield "systemd-analyze is not here: the unit is not checked", None
        return
    for path in sorted(HERE.glob("systemd/*.service")):
        # It looks for the program, which is not installed here: the unit is read with one that is.
        program = shutil.which("true")
        with tempfile.TemporaryDirectory() as directory:
            unit = Path(directory) / path.name
            unit.write_text(path.read_text().replace("/usr/local/bin/semel", str(program)))
            # It succeeds whatever it says.
            verify = ["systemd-analyze", "--man=no", "verify", str(unit)]
            ran = subprocess.run(verify, capture_output=True, text=True)
            lines = [line for line in ran.stderr.splitlines() if path.name in line]
            yield f"{path.name} by systemd-analyze verify", "; ".join(lines) or None
            exposure = ["systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE_MAX}", str(unit)]
            yield f"{path.name} is exposed by {EXPOSURE_MAX} of 100 at most", said(exposure)


def dockerfile() -> Checked:
    hadolint = Path(sys.executable).parent / "hadolint"
    yield "Dockerfile by hadolint", said([str(hadolint), str(HERE / "Dockerfile")])


def configurations(semel: Path) -> Checked:
    """Each configuration with its deployment, where a file says how it is deployed."""
    with tempfile.TemporaryDirectory() as directory:
        for path in sorted(HERE.glob("*/semel.toml")):
            deployments = sorted(path.parent.glob("*.yaml")) if path.parent.name == "cloud-run" else []
            yield from checked(semel, path, deployments)
        for path in sorted(HERE.glob("kubernetes/*.yaml")):
            for document in yaml.safe_load_all(path.read_text()):
                if document["kind"] == "ConfigMap":
                    config = Path(directory) / "semel.toml"
                    config.write_text(document["data"]["semel.toml"])
                    yield from checked(semel, config, [path])


def checked(semel: Path, config: Path, deployments: list[Path]) -> Checked:
    command = [str(semel), "check", "--config", str(config)]
    for deployment in deployments or [None]:
        what = f"{config.parent.name}/{config.name}" if deployment is None else f"the configuration of {deployment.name}"
        flags = [] if deployment is None else ["--for", str(deployment)]
        yield f"{what} by semel check", said(command + flags)


def said(command: list[str]) -> str | None:
    """What a command says when it fails."""
    ran = subprocess.run(command, capture_output=True, text=True)
    return None if ran.returncode == 0 else (ran.stderr or ran.stdout).strip()


if __name__ == "__main__":
    sys.exit(main())
