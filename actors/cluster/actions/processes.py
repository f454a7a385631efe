"""The actions on processes: killed, started, paused, shut down, late to see metadata.

A crash loses the part of the disk that its ``lose_tail`` names.
"""

from __future__ import annotations

from minicluster.actors.cluster.actions.performing import ms, performs
from minicluster.actors.cluster.incarnations import end_process, record_logs, start_process
from minicluster.actors.cluster.process import Process
from minicluster.actors.cluster.roles import ClusterRoles
from minicluster.actors.nodes.broker import BeginShutdown
from minicluster.actors.nodes.metadata_publisher import SetDelay
from minicluster.log.directory import METADATA_DIRECTORY
from minicluster.scenario.actions import nodes as declared


class ProcessActions(ClusterRoles):
    """The actions on processes."""

    @performs(declared.Kill)
    def kill(self, do: declared.Kill) -> None:
        for node_id in self.ids(do.node):
            if node_id not in self.processes:
                self.note("kill", [node_id], "note", "it is down already")
                continue
            record_logs(self, node_id, "crash")
            end_process(self, node_id)
            lost = self.disks[node_id].crash(do.lose_tail)
            detail = ", ".join(f"{name} lost {count}" for name, count in lost.items())
            self.note("kill", [node_id], "start", detail)

    @performs(declared.Restart)
    def restart(self, do: declared.Restart) -> None:
        for node_id in self.ids(do.node):
            if node_id in self.processes:
                self.kill(node_id)
            self.note("restart", [node_id], "start")
            start_process(self, node_id)

    @performs(declared.Bounce)
    def bounce(self, do: declared.Bounce) -> None:
        for node_id in self.ids(do.node):
            if node_id not in self.processes:
                self.note("bounce", [node_id], "note", "it is down already")
                continue
            self.kill(node_id, lose_tail=do.lose_tail)
            self.rt.schedule(self.now_ms + ms(do.down), self._start_again, node_id)

    def _start_again(self, node_id: int) -> None:
        if node_id not in self.processes:
            self.restart(node_id)

    @performs(declared.Wipe)
    def wipe(self, do: declared.Wipe) -> None:
        for node_id in self.ids(do.node):
            if node_id in self.processes:
                self.kill(node_id)
            self.disks[node_id].wipe(self.new_directories(node_id))
            self.note("wipe", [node_id], "start")

    @performs(declared.Pause)
    def pause(self, do: declared.Pause) -> None:
        for node_id in self.ids(do.node):
            process = self.processes.get(node_id)
            if process is None or process.paused:
                self.note("pause", [node_id], "note", "it does not run")
                continue
            process.paused = True
            self.rt.pause(process.actors)
            self.note("pause", [node_id], "start")
            if do.lasting is not None:
                self.rt.schedule(self.now_ms + ms(do.lasting), self._resume, process)

    @performs(declared.Resume)
    def resume(self, do: declared.Resume) -> None:
        for node_id in self.ids(do.node):
            process = self.processes.get(node_id)
            if process is None or not process.paused:
                self.note("resume", [node_id], "note", "it is not paused")
            else:
                self._resume(process)

    def _resume(self, process: Process) -> None:
        if process.paused:
            process.paused = False
            self.rt.resume(process.actors)
            self.note("resume", [process.node_id], "stop")

    @performs(declared.ControlledShutdown)
    def controlled_shutdown(self, do: declared.ControlledShutdown) -> None:
        for node_id in self.ids(do.node):
            process = self.processes.get(node_id)
            if process is None:
                self.note("controlled_shutdown", [node_id], "note", "it is down already")
            elif process.broker is not None:
                process.broker.hear(BeginShutdown())
                self.note("controlled_shutdown", [node_id], "start")
            else:
                end_process(self, node_id)
                self.disks[node_id].log(METADATA_DIRECTORY).flush()
                self.note("controlled_shutdown", [node_id], "start")

    @performs(declared.PublishDelay)
    def publish_delay(self, do: declared.PublishDelay) -> None:
        ids = self.ids(do.broker)
        for node_id in ids:
            self._set_publish_delay((node_id, ms(do.delay)))
        if do.lasting is not None:
            until_ms = self.now_ms + ms(do.lasting)
            for node_id in ids:
                self.rt.schedule(until_ms, self._set_publish_delay, (node_id, 0))

    def _set_publish_delay(self, what: tuple[int, int]) -> None:
        node_id, delay_ms = what
        process = self.processes.get(node_id)
        if process is None or process.publisher is None:
            self.note("publish_delay", [node_id], "note", "it publishes nothing")
            return
        process.publisher.hear(SetDelay(delay_ms))
        phase = "start" if delay_ms else "stop"
        self.note("publish_delay", [node_id], phase, f"{delay_ms}ms")

    @performs(declared.Mutate)
    def mutate(self, do: declared.Mutate) -> None:
        self.faults.plant(do.fault, not do.off)
        self.note("mutate", [do.fault], "stop" if do.off else "start")
