import type { Mutation, Patch } from './mutation.ts'

const HARNESS = 'harness/sandglass_harness'

/** Removes the wait for sockets and space that are still in use. */
const NOTHING_WAITED_FOR: Patch = {
  file: `${HARNESS}/broker/uncollected.py`,
  from: '            if time.monotonic() > deadline:\n                return False\n',
  to: '            return True\n',
}

/** The defences, in the order of the table in SECURITY.md. */
export const MUTATIONS: readonly Mutation[] = [
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
        from: '        return self._read() == self._normal\n',
        to: '        return len(self._read()) == len(self._normal)\n',
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
  },
  {
    name: 'read-only-packages',
    defence: 'packages are mounted read-only',
    instead: 'they are mounted like a working directory, and what a script writes there is imported by the next run',
    patches: [
      {
        file: 'src/engines/local/bwrap-args.ts',
        from: 'readOnly(layout.packages, INSIDE.packages)',
        to: "['--bind', layout.packages, INSIDE.packages]",
      },
    ],
    selected: [
      { suite: 'defences', titles: ['changes none of the packages'] },
      { suite: 'installation', titles: ['the packages are read-only for scripts'] },
    ],
    quick: [{ suite: 'defences', titles: ['changes none of the packages'] }],
  },
  {
    name: 'domains-of-activities',
    defence: 'each activity of a workspace is in a Landlock domain of its own',
    instead: 'they are in none, as on a kernel without it',
    patches: [
      {
        file: `${HARNESS}/script/keeper.py`,
        from: 'self._has_domain = landlock.scope_signals() and ',
        to: 'self._has_domain = False and ',
      },
    ],
    selected: [{ suite: 'defences', titles: ['another activity of its workspace'] }],
    quick: [{ suite: 'defences', titles: ['another activity of its workspace'] }],
  },
  {
    name: 'environment-of-programs',
    defence: 'scripts and programs get the variables of the sandbox alone',
    instead: 'they inherit those with which the harness was started',
    doubled: 'the environment of the harness is empty',
    patches: [
      {
        file: `${HARNESS}/start.py`,
        from: '        os.environ.clear()  # set by the launcher and the interpreter\n',
        to: '',
      },
      { file: 'src/engines/local/spawn-launcher.ts', from: ' env: {},\n', to: ' env: process.env,\n' },
    ],
    selected: [{ suite: 'workspace-programs', titles: ['the environment of the host is not inherited'] }],
    quick: [],
  },
  {
    name: 'links-in-workspaces',
    defence: 'the host reads and writes files of a workspace by descriptors, and follows no link on the way',
    instead: 'a link to a directory is entered, and a link to a file is read',
    doubled:
      'where the kernel follows links in spite of the flag, which a trial tells, an opened directory is compared with its name',
    patches: [
      { file: `${HARNESS}/broker/scratch.py`, from: 'os.O_DIRECTORY | os.O_NOFOLLOW', to: 'os.O_DIRECTORY' },
      { file: `${HARNESS}/broker/scratch.py`, from: 'FOLLOWS_LINKS = _follows_links()', to: 'FOLLOWS_LINKS = False' },
      {
        file: `${HARNESS}/broker/paths.py`,
        from: 'READABLE = os.O_RDONLY | os.O_NOFOLLOW',
        to: 'READABLE = os.O_RDONLY',
      },
    ],
    selected: [{ suite: 'workspace-files', titles: ['a path that leaves the workspace', 'what a link leads to'] }],
    quick: [],
  },
  {
    name: 'output-window',
    defence: 'a sandbox that sends more output of an activity than its window is destroyed',
    instead: 'the host keeps whatever arrives',
    patches: [
      { file: 'src/workspace/activity.ts', from: 'return room >= -slack', to: 'return room >= -slack || bytes >= 0' },
    ],
    selected: [{ suite: 'workspace-link', titles: ['sends more than its window'] }],
    quick: [],
  },
  {
    name: 'lease-of-workspaces',
    defence: 'an owner of a persisted workspace that another one has followed cannot write to the store',
    instead: 'it takes the state that it finds for its own',
    patches: [
      {
        file: 'src/persistence/lease.ts',
        from: 'if (present.record.owner?.token !== this.#token || present.tag === undefined) break',
        to: 'if (present.tag === undefined) break',
      },
    ],
    selected: [{ suite: 'lease', titles: ['cannot write again'] }],
    quick: [],
  },
  {
    name: 'conditional-records',
    defence: 'the record of a persisted workspace is written on the condition that it is the one that was read',
    instead: 'it is written over whatever is there',
    doubled: 'a store that takes a second write on the same state is refused',
    patches: [
      {
        file: 'src/persistence/record.ts',
        from: '  return store.write(RECORDS_AREA, digestOf(id), JSON.stringify(onDisk), tag)\n',
        to:
          '  const key = digestOf(id)\n' +
          '  const force = async (): Promise<string | undefined> =>\n' +
          '    (await store.write(RECORDS_AREA, key, JSON.stringify(onDisk), (await store.read(RECORDS_AREA, key))?.tag ?? tag)) ?? force()\n' +
          '  return force()\n',
      },
      { file: 'src/persistence/lease.ts', from: '        await refuseUnconditional(store, next, tag)\n', to: '' },
    ],
    selected: [{ suite: 'lease', titles: ['who ask at once', 'cannot write again'] }],
    quick: [],
  },
  {
    name: 'unsettled-files',
    defence:
      'a file that changed within 20 ms of a walk is read again at the next one, for its time of change may come twice',
    instead: 'its time of change is believed at once',
    patches: [
      { file: `${HARNESS}/broker/files.py`, from: 'UNSETTLED_NS = 20_000_000\n', to: 'UNSETTLED_NS = -(1 << 62)\n' },
    ],
    selected: [{ suite: 'workspace-persist', titles: ['within 20 ms of a walk'] }],
    quick: [],
  },
  {
    name: 'allowed-dependencies',
    defence: '`allow` is asked for every package of a lock to which a script led',
    instead: 'it is asked only for those that the script names, and not for what they need',
    patches: [
      {
        file: 'src/environments/builder.ts',
        from: 'const refused = refusedOf(packages, allow)',
        to: 'const named = packages.filter(({ name }) => request.requirements.some((one) => one.name === name))\n    const refused = refusedOf(named, allow)',
      },
    ],
    selected: [{ suite: 'named-by-scripts', titles: ['every package of the lock is checked'] }],
    quick: [],
  },
  {
    name: 'hashes-of-wheels',
    defence: 'a wheel is installed only with the SHA-256 that its lock names',
    instead: 'wheels are installed by a lock without hashes',
    patches: [
      {
        file: 'src/environments/installer.ts',
        from: "'pylock.toml'), lock.text)",
        to: "'pylock.toml'), lock.text.replaceAll(/hashes = \\{[^}]*\\}/g, 'hashes = {}'))",
      },
    ],
    selected: [{ suite: 'index-faults', titles: ['another SHA-256 than promised'] }],
    quick: [],
  },
  {
    name: 'secret-redaction',
    defence: 'values of secrets are redacted in all that leaves a run',
    instead: 'no value is looked for',
    patches: [
      {
        file: 'src/redaction/redactor.ts',
        from: '= patternsOf(secrets)\n',
        to: '= patternsOf(secrets.slice(secrets.length))\n',
      },
    ],
    selected: [{ suite: 'cases', titles: ['SEC-006', 'SEC-009', 'SEC-012', 'SEC-013'] }],
    quick: [{ suite: 'cases', titles: ['SEC-006'] }],
  },
  {
    name: 'escapes-in-redaction',
    defence: 'escapes that Python writes (`\\n`, `\\x0a`, `%22`, `&quot;`) are read before a secret is looked for',
    instead: 'escapes are not decoded',
    patches: [
      {
        file: 'src/redaction/unit-reader.ts',
        from: '    if (code === BACKSLASH) return this.#decode(BACKSLASH)\n',
        to: '    if (code === BACKSLASH) return unitFor(BACKSLASH)\n',
      },
    ],
    selected: [{ suite: 'defences', titles: ['the form that repr writes'] }],
    quick: [{ suite: 'defences', titles: ['the form that repr writes'] }],
  },
  {
    name: 'deadline-of-checks',
    defence: 'a value that is slow to check has 1 s in a thread of its own',
    instead: 'it has as long as it takes',
    doubled: 'the thread interrupts itself before the host kills it',
    patches: [
      {
        file: 'src/judge/judge-thread.ts',
        from: 'const tryMs = Math.min(deadlineMs, shortMs ?? this.#maxTryMs)',
        to: 'const tryMs = shortMs === undefined ? deadlineMs * 1e6 : deadlineMs',
      },
    ],
    selected: [{ suite: 'defences', titles: ['a value that is slow to check'] }],
    quick: [{ suite: 'defences', titles: ['a value that is slow to check'] }],
  },
  {
    name: 'digest-of-content',
    defence: 'content of a store is given out only as far as its digest fits',
    instead: 'the digest is not compared',
    patches: [
      {
        file: 'src/stores/content.ts',
        from: '  if ((await digest.end()) !== sha256) throw damaged(sha256, store)\n',
        to: '  await digest.end()\n',
      },
    ],
    selected: [{ suite: 'store', titles: ['content that was changed behind the store'] }],
    quick: [],
  },
  {
    name: 'states-of-records',
    defence: 'a record of a store is replaced only by a writer who knows its present state',
    instead: 'any writer replaces it',
    patches: [
      {
        file: 'src/stores/directory-records.ts',
        from:
          '      if (latest?.slice(MARK.length) !== expected) return undefined\n' +
          '      const next = String(Number(expected ?? 0) + 1)',
        to: '      const next = String(Number(latest?.slice(MARK.length) ?? 0) + 1)',
      },
    ],
    selected: [{ suite: 'store', titles: ['of writers at once, one succeeds', 'by who knows its present state'] }],
    quick: [{ suite: 'store', titles: ['by who knows its present state'] }],
  },
  {
    name: 'states-between-processes',
    defence: 'of two processes that write the same state of a record of a store, one succeeds',
    instead: 'each looks whether the place is free, and then takes it',
    patches: [
      {
        file: 'src/stores/durable-files.ts',
        from: '    linkSync(aside, path)\n',
        to: '    if (existsSync(path)) return false\n' + '    copyFileSync(aside, path)\n',
      },
      {
        file: 'src/stores/durable-files.ts',
        from: "import { linkSync } from 'node:fs'\n",
        to: "import { copyFileSync, existsSync } from 'node:fs'\n",
      },
    ],
    selected: [{ suite: 'store-processes', titles: ['one succeeds each time'] }],
    quick: [],
  },
  {
    name: 'synchronised-content',
    defence: 'content of a store is synchronised with the disk before it gets its name',
    instead: 'it is left to the kernel',
    patches: [
      {
        file: 'src/stores/durable-files.ts',
        from: '      await file.sync()\n      return path\n',
        to: '      return path\n',
      },
    ],
    selected: [{ suite: 'store-order', titles: ['content is on the disk before it has its name'] }],
    quick: [],
  },
  {
    name: 'synchronised-names',
    defence: 'the directory of content is synchronised before a save is acknowledged',
    instead: 'it is left to the kernel',
    patches: [
      {
        file: 'src/stores/durable-files.ts',
        from: '    await rename(aside, path)\n    await syncDirectory(dirname(path))\n',
        to: '    await rename(aside, path)\n',
      },
    ],
    selected: [{ suite: 'store-order', titles: ['content is on the disk before it has its name'] }],
    quick: [],
  },
  {
    name: 'content-in-one-step',
    defence: 'content of a store appears under its name in one step',
    instead: 'it is copied to its place',
    patches: [
      {
        file: 'src/stores/durable-files.ts',
        from: '    await rename(aside, path)\n    await syncDirectory(dirname(path))\n',
        to: '    await copyFile(aside, path)\n    await syncDirectory(dirname(path))\n',
      },
      {
        file: 'src/stores/durable-files.ts',
        from: 'import { type FileHandle, open,',
        to: 'import { copyFile, type FileHandle, open,',
      },
    ],
    selected: [{ suite: 'store-order', titles: ['content is on the disk before it has its name'] }],
    quick: [],
  },
  {
    name: 'accepted-scripts',
    defence: 'a script that the reviewer does not accept does not run',
    instead: 'it runs',
    patches: [
      {
        file: 'src/orchestrator/attempt.ts',
        from: ': { error: reviewed.error }',
        to: ': { script, host }',
      },
    ],
    selected: [{ suite: 'review', titles: ['who never accepts lets nothing run', 'who refuses gives the model'] }],
    quick: [{ suite: 'review', titles: ['who never accepts lets nothing run'] }],
  },
  {
    name: 'accepted-by-agents',
    defence: 'a script of an agent that the reviewer does not accept does not run',
    instead: 'it runs',
    patches: [
      {
        file: 'src/reviewed-runs.ts',
        from: 'reviewed.accepted ? reviewed.script : notRun(reviewed.error, [])',
        to: 'reviewed.accepted ? reviewed.script : script',
      },
    ],
    selected: [{ suite: 'review', titles: ['accepts, replaces and refuses; the answer says why'] }],
    quick: [],
  },
  {
    name: 'answers-in-the-graph',
    defence: 'an answer that is no accept runs nothing of a code agent',
    instead: 'it runs the script',
    patches: [
      {
        file: 'src/code-agent/agent-graph.ts',
        from: "if (decision.decision !== 'accept') {",
        to: "if (decision.decision === 'edit') {",
      },
    ],
    selected: [{ suite: 'code-agent', titles: ['takes accept with another script'] }],
    quick: [],
  },
  {
    name: 'scripts-begun-once',
    defence: 'a script of a code agent that has begun is not begun again',
    instead: 'it runs once more',
    patches: [
      {
        file: 'src/code-agent/claims.ts',
        from: 'if (inForce.claim !== own.claim) {',
        to: "if (inForce.claim === '') {",
      },
    ],
    selected: [{ suite: 'code-agent-restart', titles: ['whose process is killed goes on in another one'] }],
    quick: [],
  },
  {
    name: 'approved-calls',
    defence: 'a call that needs approval does not execute without it',
    instead: 'it executes',
    patches: [
      {
        file: 'src/tools/bridge.ts',
        from: 'if (!decision.approved) throw denied(tool, decision.reason)',
        to: 'if (!decision.approved) return args',
      },
    ],
    selected: [{ suite: 'approvals', titles: ['a denial is a ToolError with the reason', 'nobody answers'] }],
    quick: [{ suite: 'approvals', titles: ['a denial is a ToolError with the reason'] }],
  },
  {
    name: 'checked-corrections',
    defence: "the reviewer's own script is checked before it runs",
    instead: 'it runs as it is',
    patches: [
      {
        file: 'src/orchestrator/attempt.ts',
        from: 'if (violations.length > 0 || mine === undefined) return { problem: rejectionText(violations) }',
        to: 'if (mine === undefined) return { problem: rejectionText(violations) }',
      },
    ],
    selected: [{ suite: 'review', titles: ['who replaces the script runs that, once it has no mistake'] }],
    quick: [],
  },
]
