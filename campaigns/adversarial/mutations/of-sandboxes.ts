import type { Mutation, Patch } from './mutation.ts'

const HARNESS = 'harness/sandglass_harness'

/** Removes the wait for sockets and space that are still in use. */
const NOTHING_WAITED_FOR: Patch = {
  file: `${HARNESS}/broker/uncollected.py`,
  from: '            if time.monotonic() > deadline:\n                return False\n',
  to: '            return True\n',
}

/** The defences of a sandbox against its scripts, and between its runs. */
export const SANDBOX_MUTATIONS: readonly Mutation[] = [
  {
    name: 'kill-at-the-end',
    defence: 'kill at the end of a run: one `kill(-1, SIGKILL)` over the pid namespace',
    instead: 'only the process group of the script is killed, and its end is taken as proof that all processes ended',
    doubled: 'a sandbox with an unconfirmed end or an open socket is destroyed with its processes',
    patches: [
      { file: `${HARNESS}/script/zygote.py`, from: '        os.kill(-1, signal.SIGKILL)\n', to: '        pass\n' },
      {
        file: `${HARNESS}/broker/reaper.py`,
        from: '            if not any(name.isdigit() and name not in spared for name in os.listdir("/proc")):\n',
        to: '            if True:\n',
      },
      NOTHING_WAITED_FOR,
    ],
    selected: [
      { suite: 'supervisor', titles: ['daemon', 'stopping itself'] },
      { suite: 'cases', titles: ['ISO-002', 'CTL-018'] },
    ],
    quick: [{ suite: 'supervisor', titles: ['daemon'] }],
  },
  {
    name: 'seccomp',
    defence: 'one filter of system calls, loaded by the zygote before its first fork',
    instead: 'a filter is loaded that allows everything',
    patches: [
      {
        file: `${HARNESS}/script/seccomp.py`,
        from: '    program = build(machine, zygote)\n',
        to: '    program = [(_RET, 0, 0, _ALLOW)]\n',
      },
    ],
    selected: [
      {
        suite: 'supervisor',
        titles: ['every system call of the filter', 'changes no limit', 'nothing that the next run can see'],
      },
      {
        suite: 'cases',
        titles: [
          'ISO-013',
          'ISO-014',
          'ISO-025',
          'ISO-031',
          'ISO-032',
          'ISO-033',
          'ISO-035',
          'ISO-037',
          'ISO-040',
          'NET-016',
          'RES-021',
          'RES-023',
          'CTL-010',
        ],
      },
    ],
    quick: [{ suite: 'supervisor', titles: ['every system call of the filter'] }],
  },
  {
    name: 'tmpfs-sizes',
    defence: 'sized tmpfs for /tmp, /var/tmp, the workspace and /dev/shm',
    instead: 'each may take half of the memory of the machine',
    patches: [
      {
        file: 'src/engines/local/bwrap-args.ts',
        from: "['--perms', mode, '--size', String(size), '--tmpfs', path]",
        to: "size < 0 ? [] : ['--perms', mode, '--tmpfs', path]",
      },
    ],
    selected: [
      { suite: 'supervisor', titles: ['fills every file system'] },
      { suite: 'cases', titles: ['RES-007', 'RES-012', 'RES-016'] },
    ],
    quick: [{ suite: 'supervisor', titles: ['with bytes'] }],
  },
  {
    name: 'empty-environment',
    defence: 'spawn with an empty environment',
    instead: 'bubblewrap, and so the harness, gets the environment of the host',
    patches: [{ file: 'src/engines/local/spawn-launcher.ts', from: ' env: {},\n', to: ' env: process.env,\n' }],
    selected: [
      { suite: 'defences', titles: ['environment'] },
      { suite: 'cases', titles: ['SEC-001', 'SEC-002', 'SEC-004', 'ISO-023'] },
    ],
    quick: [{ suite: 'defences', titles: ['environment'] }],
  },
  {
    name: 'non-dumpable-broker',
    defence: 'the broker, and the zygote with it, is non-dumpable from its first act on',
    instead: 'both stay dumpable',
    patches: [{ file: `${HARNESS}/start.py`, from: '    set_dumpable(False)\n', to: '' }],
    selected: [
      { suite: 'supervisor', titles: ['below /proc', 'in the memory of the next run'] },
      { suite: 'cases', titles: ['ISO-008', 'ISO-023', 'ISO-051', 'CTL-042'] },
    ],
    quick: [{ suite: 'supervisor', titles: ['below /proc'] }],
  },
  {
    name: 'pid-1',
    defence: 'the broker is PID 1 of the sandbox (`--as-pid-1`), so that no signal of a script affects it',
    instead: 'bubblewrap stays PID 1, and the broker is a process like others',
    doubled: 'a harness that is not PID 1 refuses to start, and the host refuses a sandbox whose harness is not',
    patches: [
      { file: 'src/engines/local/bwrap-args.ts', from: "['--as-pid-1', ", to: '[' },
      { file: `${HARNESS}/start.py`, from: '    if os.getpid() != 1:\n', to: '    if os.getpid() == 0:\n' },
      { file: 'src/sandbox/checks.ts', from: '  pid: 1,\n', to: '' },
    ],
    selected: [
      { suite: 'defences', titles: ['kills all that it can reach'] },
      {
        suite: 'supervisor',
        titles: ['signal that can be blocked', 'at the zygote', 'changes no limit', 'below /proc'],
      },
      { suite: 'cases', titles: ['CTL-028', 'ISO-002', 'TIM-001'] },
    ],
    quick: [{ suite: 'defences', titles: ['kills all that it can reach'] }],
  },
  {
    name: 'separate-zygote',
    defence: 'scripts are forked from a zygote that never sees a request',
    instead: 'the process that forks parses each request, as one process for both would',
    patches: [
      {
        file: `${HARNESS}/broker/broker.py`,
        from: '        self._uses += 1\n        self._sandbox.reaper.forget()\n',
        to: '        self._uses += 1\n        self._zygote.socket.send(b"X" + encode(frame)[:100000])\n        self._sandbox.reaper.forget()\n',
      },
      { file: `${HARNESS}/script/commands.py`, from: 'control, size=16):', to: 'control, size=1 << 17):' },
      {
        file: `${HARNESS}/script/zygote.py`,
        from: '        if message == b"S":\n',
        to: '        if message[:1] == b"X":\n            request = json.loads(message[1:]) if message[-1:] == b"\\n" else None\n        elif message == b"S":\n',
      },
    ],
    selected: [
      { suite: 'supervisor', titles: ['in the memory of the next run'] },
      { suite: 'cases', titles: ['SEC-004', 'CTL-003', 'ISO-023'] },
    ],
    quick: [{ suite: 'supervisor', titles: ['in the memory of the next run'] }],
  },
  {
    name: 'frame-size-limit',
    defence: 'the size limit of a line, before it is parsed, on the host',
    instead: 'a line may have any length',
    patches: [
      {
        file: 'src/protocol/lines.ts',
        from: '    if (length <= this.#maxLineBytes) return\n',
        to: '    if (length >= 0) return\n',
      },
    ],
    selected: [
      { suite: 'cases', titles: ['PRO-013', 'PRO-014', 'PRO-015', 'PRO-016', 'PRO-037'] },
      { suite: 'supervisor', titles: ['without end'] },
    ],
    quick: [{ suite: 'cases', titles: ['PRO-037'] }],
  },
  {
    name: 'own-stamping-of-ids',
    defence: 'the broker sets type and execution id of each frame itself, and serialises it again',
    instead: 'a frame of the script that names an execution id is passed on as it is',
    patches: [
      {
        file: `${HARNESS}/broker/run.py`,
        from: '        frame = decode(line)\n',
        to: '        frame = decode(line)\n        if "execution_id" in frame:\n            return self._outbox.put(encode(frame))\n',
      },
    ],
    selected: [
      { suite: 'supervisor', titles: ['frames that are not its own'] },
      { suite: 'cases', titles: ['PRO-005', 'PRO-007', 'PRO-042', 'CTL-024', 'RPC-018'] },
    ],
    quick: [{ suite: 'supervisor', titles: ['frames that are not its own'] }],
  },
  {
    name: 'end-of-the-set-up',
    defence: 'a failure of tools or preamble that is reported after the set-up is an exception of the script',
    instead: 'it is passed on as it is claimed',
    patches: [
      {
        file: `${HARNESS}/broker/run.py`,
        from: '        too_late = claimed == "setup" and self.is_set_up\n',
        to: '        too_late = False\n',
      },
    ],
    selected: [{ suite: 'defences', titles: ['what its caller gave it has failed'] }],
    quick: [{ suite: 'defences', titles: ['what its caller gave it has failed'] }],
  },
  {
    name: 'uid-per-sandbox',
    defence: 'a uid of its own for each sandbox, as root',
    instead: 'all sandboxes of a host have the same uid',
    patches: [
      {
        file: 'src/engines/local/uids.ts',
        from: 'this.#free.splice(index, 1)[0] as number',
        to: 'this.#free[index] as number',
      },
    ],
    selected: [
      { suite: 'defences', titles: ['uid'] },
      { suite: 'cases', titles: ['FLT-026', 'CTL-028'] },
    ],
    quick: [{ suite: 'defences', titles: ['uid'] }],
  },
  {
    name: 'wipe',
    defence: 'the workspace, /tmp, /var/tmp and /dev/shm are wiped at the end of a run',
    instead: 'nothing is deleted, and that is told as done',
    doubled: 'a run that leaves space in use ends its sandbox',
    patches: [
      {
        file: `${HARNESS}/broker/scratch.py`,
        from: '        return all([self._wipe_root(root, deadline) for root in self._roots])\n',
        to: '        return deadline > 0\n',
      },
      NOTHING_WAITED_FOR,
    ],
    selected: [
      { suite: 'supervisor', titles: ['fills every file system', 'nothing that the next run can see'] },
      { suite: 'between-runs', titles: ['flags on its stdin'] },
      { suite: 'cases', titles: ['RES-016', 'RES-018', 'CTL-003', 'CTL-006'] },
    ],
    quick: [{ suite: 'supervisor', titles: ['nothing that the next run can see'] }],
  },
  {
    name: 'network-counters',
    defence: 'a run after which the counters of the network namespace are others ends its sandbox',
    instead: 'they are not compared, so the next run finds connections in TIME_WAIT',
    patches: [
      {
        file: `${HARNESS}/broker/network.py`,
        from: '        return now == self._normal or _are_others(self._normal, now, self._tentative)\n',
        to: '        return len(now) == len(self._normal)\n',
      },
    ],
    selected: [{ suite: 'between-runs', titles: ['that used the network'] }],
    quick: [{ suite: 'between-runs', titles: ['that used the network for a connection'] }],
  },
  {
    name: 'descriptors-in-flight',
    defence: 'no run begins before the kernel has freed the sockets and files of the last one',
    instead: 'the broker does not wait, so the next run finds data in a cycle of sockets',
    patches: [NOTHING_WAITED_FOR],
    selected: [{ suite: 'fresh', titles: ['FLIGHT-'] }],
    quick: [{ suite: 'fresh', titles: ['FLIGHT-01'] }],
  },
  {
    name: 'growth',
    defence: 'a sandbox whose broker or zygote holds 16 MiB more than at start ends with its next run',
    instead: 'it serves on, whatever it holds',
    patches: [
      {
        file: `${HARNESS}/broker/sandbox.py`,
        from: '            self._has_grown = True\n',
        to: '            pass\n',
      },
    ],
    selected: [{ suite: 'growth', titles: ['16 MiB more'] }],
    quick: [{ suite: 'growth', titles: ['16 MiB more'] }],
  },
  {
    name: 'random-measurements',
    defence: 'the processor time that a script uses while tools execute is measured at random times',
    instead: 'it is measured when a call begins and ends, and processes that live in between are not counted',
    patches: [
      {
        file: `${HARNESS}/broker/clock.py`,
        from: '        self._executing, self._reported_at = executing, now\n',
        to: '        self._executing, self._reported_at = executing, now\n        if self._moves:\n            self._measure(now)\n            self._plan_measurement(now)\n',
      },
      {
        file: `${HARNESS}/broker/clock.py`,
        from: '        self._measure_at = now + self._pause(self._mean_pause)\n',
        to: '        self._measure_at = now + MAX_PAUSE_SEC\n',
      },
    ],
    selected: [{ suite: 'fresh', titles: ['TIME-'] }],
    quick: [{ suite: 'fresh', titles: ['TIME-01'] }],
    alone: true,
  },
  {
    name: 'read-only-packages',
    defence: 'packages are mounted read-only',
    instead: 'they are mounted like a working directory, and what a script writes there is imported by the next run',
    patches: [
      {
        file: 'src/engines/local/bwrap-args.ts',
        from: 'bindReadOnly(layout.packages, INSIDE.packages)',
        to: "['--bind', layout.packages, INSIDE.packages]",
      },
    ],
    selected: [
      { suite: 'defences', titles: ['changes none of the packages'] },
      { suite: 'installation', titles: ['the packages are read-only for scripts'] },
    ],
    quick: [{ suite: 'defences', titles: ['changes none of the packages'] }],
  },
]
