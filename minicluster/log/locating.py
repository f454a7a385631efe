"""The metadata logs that a path names: a run, folders of controllers, a log, or one file of it.

Each number in a name is checked before it is used: a folder comes from anywhere, and Kafka has no
room for an offset of twenty nines.
"""

from __future__ import annotations

import re
from pathlib import Path

from minicluster.files import UnusableFile, check_regular
from minicluster.log.checkpoint import BOOTSTRAP_NAME, CHECKPOINT_SUFFIX, parse_checkpoint_name
from minicluster.log.directory import METADATA_DIRECTORY, MetadataFiles
from minicluster.log.errors import InvalidName, NotALog
from minicluster.log.format.limits import DEFAULT_LIMITS, ReadLimits
from minicluster.log.segment import LOG_SUFFIX
from minicluster.log.text_files import META_PROPERTIES_NAME, read_properties
from minicluster.values import Value, replace

RUN_NAME = "run.json"
NODE_ID_MAX = 2**31 - 1
_OFFSET_MAX, _EPOCH_MAX = 2**63 - 1, 2**31 - 1
_CONTROLLER = re.compile(r"controller-([0-9]+)")
_SEGMENT = re.compile(r"[0-9]{20}\.log")


class Located(Value):
    """The one run that a path names, with the metadata logs of its controllers."""

    path: Path
    run_json: Path | None
    logs: tuple[MetadataFiles, ...]
    missing: tuple[str, ...] = ()  # controllers' folders without a log, if that is let pass


def locate(path: Path, *, partly: bool = False, limits: ReadLimits = DEFAULT_LIMITS) -> Located:
    """Find the metadata logs that a path names.

    Shapes:  a run folder; a folder with ``controller-<id>`` folders; one of these; a
             ``__cluster_metadata-0`` folder; one segment or checkpoint. ``partly``: of several
             controllers, those without a log are listed as missing. The limits hold for each file.
    Errors:  NotALog, with the forms of path that there are.
    """
    located = _find(path, partly)
    return replace(located, logs=tuple(replace(files, limits=limits) for files in located.logs))


def _find(path: Path, partly: bool) -> Located:
    if not path.exists():
        raise NotALog(f"{path}: there is no such file or folder")
    if not path.is_dir():
        return Located(path, None, (_single_file(path),))
    run_json = path / RUN_NAME
    controllers = _controllers_in(path)
    if controllers:
        located = _located(path, run_json if run_json.is_file() else None, controllers)
        if located.missing and not (partly and (located.logs or located.run_json)):
            raise NotALog(located.missing[0])
        return located
    if run_json.is_file():
        return Located(path, run_json, ())
    match = _CONTROLLER.fullmatch(path.name)
    if (path / METADATA_DIRECTORY).is_dir():
        node = _node_id(match[1], path) if match else _node_id_of(path)
        return Located(path, None, (_controller(path, node),))
    if _files_in(path, LOG_SUFFIX) or _files_in(path, CHECKPOINT_SUFFIX):
        parent = _CONTROLLER.fullmatch(path.resolve().parent.name)
        return Located(path, None, (_folder(path, _node_id(parent[1], path) if parent else None),))
    content = "is empty" if not any(path.iterdir()) else "holds no metadata log"
    raise NotALog(
        f"{path}: the folder {content}; give a run folder, a controller-<id> folder, a "
        f"{METADATA_DIRECTORY} folder, or one .log or .checkpoint file"
    )


def _located(path: Path, run_json: Path | None, controllers: list[tuple[int, Path]]) -> Located:
    logs: list[MetadataFiles] = []
    missing: list[str] = []
    for node, folder in controllers:
        try:
            logs.append(_controller(folder, node))
        except NotALog as error:
            missing.append(str(error))
    return Located(path, run_json, tuple(logs), tuple(missing))


def _controllers_in(path: Path) -> list[tuple[int, Path]]:
    matches = [(_CONTROLLER.fullmatch(child.name), child) for child in path.iterdir()]
    return sorted((_node_id(m[1], child), child) for m, child in matches if m and child.is_dir())


def _node_id(digits: str, where: Path) -> int:
    if len(digits) > len(str(NODE_ID_MAX)) or int(digits) > NODE_ID_MAX:
        raise InvalidName(f"{where}: a node id is at most {NODE_ID_MAX}")
    return int(digits)


def _node_id_of(path: Path) -> int | None:
    file = path / META_PROPERTIES_NAME
    node_id = (read_properties(file) or {}).get("node.id", "")
    return _node_id(node_id, file) if re.fullmatch("[0-9]+", node_id) else None


def _files_in(path: Path, suffix: str) -> list[Path]:
    return sorted(child for child in path.iterdir() if child.name.endswith(suffix))


def _folder(path: Path, node_id: int | None) -> MetadataFiles:
    if not path.is_dir():
        raise NotALog(f"{path}: there is no such folder")
    segments = [p for p in _files_in(path, LOG_SUFFIX) if _SEGMENT.fullmatch(p.name)]
    checkpoints = [p for p in _files_in(path, CHECKPOINT_SUFFIX) if parse_checkpoint_name(p.name)]
    for file in (*segments, *checkpoints):
        if int(file.name[:20]) > _OFFSET_MAX:
            raise InvalidName(f"{file}: an offset is at most {_OFFSET_MAX}")
    for file in checkpoints:
        if int(file.name[21:31]) > _EPOCH_MAX:
            raise InvalidName(f"{file}: an epoch is at most {_EPOCH_MAX}")
    if not segments and not checkpoints:
        raise NotALog(f"{path}: no segment (.log) and no checkpoint in this folder")
    for file in (*segments, *checkpoints):
        _check_regular(file)
    return MetadataFiles(path, node_id, tuple(segments), tuple(checkpoints))


def _controller(path: Path, node_id: int | None) -> MetadataFiles:
    bootstrap = path / BOOTSTRAP_NAME
    files = _folder(path / METADATA_DIRECTORY, node_id)
    return replace(files, bootstrap=bootstrap if bootstrap.is_file() else None)


def _check_regular(file: Path) -> None:
    try:
        check_regular(file)
    except UnusableFile as error:
        raise NotALog(str(error)) from None
    except OSError as error:
        raise NotALog(f"{file}: cannot be read: {error.strerror}") from None


def _single_file(path: Path) -> MetadataFiles:
    _check_regular(path)
    if path.stat().st_size == 0:
        raise NotALog(f"{path}: the file is empty")
    if path.name.endswith(CHECKPOINT_SUFFIX):
        return MetadataFiles(path, None, (), (path,))
    return MetadataFiles(path, None, (path,), ())
