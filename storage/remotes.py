"""Where snapshots lie: a folder (also a mounted bucket), or a data set on the Hugging Face hub."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from mdqa.errors import ConfigError, MdqaError, MissingDependency, StorageError
from storage.export import remove_left, replacing

HUB = re.compile(r"hf://datasets/([\w.-]+/[\w.-]+)", re.ASCII)


class Remote(Protocol):
    """Files by name. Every method raises StorageError, which says what to do, where the place cannot be used."""

    where: str
    """The place, for the owner of the program."""

    def names(self) -> list[str]:
        """The names of what lies there, other files included."""
        ...

    def put(self, file: Path, name: str, remove: Sequence[str] = ()) -> None:
        """Store the file under a name, whole or not at all, and then take ``remove`` away."""
        ...

    def get(self, name: str, target: Path) -> None:
        """Write the file of this name to ``target``."""
        ...


def remote_of(setting: str) -> Remote | None:
    """The place that a setting names: a folder or ``hf://datasets/OWNER/NAME``; None where it is empty."""
    if not setting:
        return None
    if "://" not in setting:
        return FolderRemote(Path(setting).expanduser().absolute())
    found = HUB.fullmatch(setting.rstrip("/"))
    if found is None:
        raise ConfigError(f"{setting!r} is no place for snapshots; give a folder or hf://datasets/OWNER/NAME")
    return HubRemote(found[1])


class FolderRemote:
    """A folder. It is made if need be; the folder that holds it must be there, as a bucket that is not mounted is not.

    The file system may be one of a network: nothing is opened there as a database.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.where = str(folder)

    def names(self) -> list[str]:
        """As in :class:`Remote`."""
        with self._told("read"):
            self._make()
            return sorted(path.name for path in self.folder.iterdir() if path.is_file())

    def put(self, file: Path, name: str, remove: Sequence[str] = ()) -> None:
        """As in :class:`Remote`."""
        with self._told("written"):
            self._make()
            with replacing(file, self.folder / name) as part, file.open("rb") as source, part.open("wb") as target:
                shutil.copyfileobj(source, target, 2**20)
                target.flush()
                os.fsync(target.fileno())
            for old in remove:
                (self.folder / old).unlink(missing_ok=True)
            remove_left(self.folder, r"\.mdqa-.*\.db\.[0-9a-f]{8}\.part")

    def get(self, name: str, target: Path) -> None:
        """As in :class:`Remote`."""
        with self._told("read"):
            shutil.copyfile(self.folder / name, target)

    def _make(self) -> None:
        if not self.folder.parent.is_dir():
            raise StorageError(
                f"there is no folder {self.folder.parent} for the snapshots; make it, or mount the bucket, or change "
                "MDQA_SNAPSHOTS"
            )
        self.folder.mkdir(mode=0o700, exist_ok=True)

    @contextmanager
    def _told(self, verb: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StorageError(f"the folder of the snapshots {self.folder} cannot be {verb}: {error}") from error


class HubRemote:
    """A data set on the hub, private if this makes it; one that is public is refused. The token is ``HF_TOKEN``'s.

    A snapshot and the removal of old ones are one commit. The hub keeps what was removed in the data set's history.
    """

    def __init__(self, repository: str, api: Any = None) -> None:
        """``api``: a ``huggingface_hub.HfApi``; one is made at the first use otherwise."""
        self.repository = repository
        self.where = f"hf://datasets/{repository}"
        self._api = api
        self._ready = False

    def names(self) -> list[str]:
        """As in :class:`Remote`."""
        with self._told():
            return sorted(self._hub().list_repo_files(self.repository, repo_type="dataset"))

    def put(self, file: Path, name: str, remove: Sequence[str] = ()) -> None:
        """As in :class:`Remote`."""
        with self._told():
            hub = self._hub()
            from huggingface_hub import CommitOperationAdd, CommitOperationDelete  # noqa: PLC0415 (only with a hub)

            there = set(hub.list_repo_files(self.repository, repo_type="dataset"))
            hub.create_commit(
                self.repository,
                [
                    CommitOperationAdd(path_in_repo=name, path_or_fileobj=file),
                    *(CommitOperationDelete(path_in_repo=old) for old in remove if old in there),
                ],
                commit_message=f"Snapshot {name}",
                repo_type="dataset",
            )

    def get(self, name: str, target: Path) -> None:
        """As in :class:`Remote`; nothing is left in the hub's cache."""
        with self._told(), tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
            found = self._hub().hf_hub_download(self.repository, name, repo_type="dataset", local_dir=folder)
            Path(found).replace(target)

    def _hub(self) -> Any:
        """The API, after a look whether the data set is there and not for everybody to read."""
        if self._api is None:
            try:
                from huggingface_hub import HfApi  # noqa: PLC0415 (only with a hub)
            except ImportError:
                raise MissingDependency("MDQA_SNAPSHOTS on the hub", "huggingface_hub") from None
            self._api = HfApi()
        if not self._ready:
            self._api.create_repo(self.repository, repo_type="dataset", private=True, exist_ok=True)
            if not self._api.repo_info(self.repository, repo_type="dataset").private:
                raise StorageError(
                    f"{self.where} is public, so everybody could read all questions and labels; make it private in "
                    "its settings on the hub, or name another one"
                )
            self._ready = True
        return self._api

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except MdqaError:
            raise
        except Exception as error:  # the library's own, httpx's and the system's have no class in common
            raise StorageError(
                f"{self.where} cannot be used ({type(error).__name__}: {error}); check the name, and that HF_TOKEN may "
                "write to it"
            ) from error
