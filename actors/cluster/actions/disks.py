"""The actions on disks: slow, lying, with broken log directories."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

from minicluster.actors.cluster.actions.performing import ms, performs
from minicluster.actors.cluster.actions.processes import ProcessActions
from minicluster.actors.nodes.replica_manager import FailDirectory
from minicluster.errors import UserError
from minicluster.replica.log_manager import ReplicaStore
from minicluster.scenario.actions import nodes as declared


class DiskActions(ProcessActions):
    """The actions on disks."""

    @performs(declared.SlowDisk)
    def slow_disk(self, do: declared.SlowDisk) -> None:
        for node_id in self.ids(do.node):
            if node_id not in self.controller_ids:
                self.note("slow_disk", [node_id], "note", "a broker does not wait for its disk")
                continue
            self._set_write_ms((node_id, int(ms(do.delay))))
            if do.lasting is not None:
                self.rt.schedule(self.now_ms + ms(do.lasting), self._set_write_ms, (node_id, 0))

    def _set_write_ms(self, what: tuple[int, int]) -> None:
        node_id, write_ms = what
        if self.disks[node_id].write_ms != write_ms:
            self.disks[node_id].write_ms = write_ms
            self.note("slow_disk", [node_id], "start" if write_ms else "stop", f"{write_ms}ms")

    @performs(declared.FlushOff)
    def flush_off(self, do: declared.FlushOff) -> None:
        for node_id in self.ids(do.node):
            self.disks[node_id].lie(not do.off)
            self.note("flush_off", [node_id], "stop" if do.off else "start")

    @performs(declared.FailDir)
    def fail_dir(self, do: declared.FailDir) -> None:
        for node_id, store, directory in self._directories(do):
            process = self.processes.get(node_id)
            if directory not in store.online_directories:
                self.note("fail_dir", [node_id], "note", f"directory {do.dir} has failed already")
                continue
            if process is None or process.replicas is None:
                store.fail_directory(directory)
            else:
                process.replicas.hear(FailDirectory(do.dir))
            self.note("fail_dir", [node_id], "start", str(do.dir))

    @performs(declared.RepairDir)
    def repair_dir(self, do: declared.RepairDir) -> None:
        for node_id, store, directory in self._directories(do):
            if directory in store.online_directories:
                self.note("repair_dir", [node_id], "note", f"directory {do.dir} works")
                continue
            store.repair_directory(directory)
            self.note("fail_dir", [node_id], "stop", str(do.dir))

    def _directories(
        self, do: declared.FailDir | declared.RepairDir
    ) -> Iterator[tuple[int, ReplicaStore, uuid.UUID]]:
        for node_id in self.ids(do.broker):
            ids = self.disks[node_id].directory_ids if node_id in self.broker_ids else ()
            if do.dir >= len(ids):
                raise UserError(
                    f"{do.method}: node {node_id} has {len(ids)} log directories, not {do.dir}"
                )
            yield node_id, ReplicaStore(self.disks[node_id]), ids[do.dir]

    # Repair.

    def mend_disks(self) -> None:
        """End slow writes and lost flushes on every disk."""
        for node_id in self.node_ids:
            self._set_write_ms((node_id, 0))
            if self.disks[node_id].flushed_when_lying is not None:
                self.flush_off(node_id, off=True)

    def repair_all_dirs(self) -> None:
        """Repair every log directory and restart the brokers that had lost one."""
        for node_id in self.broker_ids:
            store = ReplicaStore(self.disks[node_id])
            ids, online = store.directory_ids, store.online_directories
            for index, directory in enumerate(ids):
                if directory not in online:
                    self.repair_dir(node_id, index)
            if len(online) < len(ids) and node_id in self.processes:
                self.restart(node_id)
