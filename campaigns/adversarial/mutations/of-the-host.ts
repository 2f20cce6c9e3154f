import type { Mutation } from './mutation.ts'

const HARNESS = 'harness/sandglass_harness'

/** The defences of the host: what it hides, judges and stores, and what it runs after a person has agreed. */
export const HOST_MUTATIONS: readonly Mutation[] = [
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
    defence: 'a value that is slow to check has 1 s in a process of its own',
    instead: 'it has as long as it takes',
    doubled: 'the process interrupts itself before the host kills it',
    patches: [
      {
        file: 'src/judge/judge-process.ts',
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
        from: '  if ((await hashed.end()) !== sha256) throw damagedError(sha256, store)\n',
        to: '  await hashed.end()\n',
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
        from: 'reviewed.accepted ? reviewed.script : rejectedResult(reviewed.error, [])',
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
        from: 'if (!decision.approved) throw deniedError(tool, decision.reason)',
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
  {
    name: 'token-of-tool-calls',
    defence: 'the endpoint of a WebSocket takes only the client that has the token of the run',
    instead: 'it takes the first client, whatever it says',
    patches: [
      {
        file: `${HARNESS}/script/tool_endpoint.py`,
        from: 'if not _compare_digest(fields.get(b"authorization", b""), b"Bearer " + token):',
        to: 'if False:',
      },
    ],
    selected: [{ suite: 'websocket', titles: ['another activity that tries every port without the token'] }],
    quick: [],
  },
  {
    name: 'bounds-of-displays',
    defence: 'a run shows a bounded number of displays, of a bounded size',
    instead: 'the broker passes all of them on',
    doubled: 'the host takes a harness that sends more for lost',
    patches: [
      {
        file: `${HARNESS}/broker/displays.py`,
        from: '        if too_many or size > MAX_DISPLAY_BYTES + _HEAD_BYTES:\n',
        to: '        if False:\n',
      },
      {
        file: 'src/executor/run-displays.ts',
        from: 'if (this.all.length >= CAPS.displays) throw',
        to: 'if (this.all.length < 0) throw',
      },
      {
        file: 'src/executor/run-displays.ts',
        from: 'if (this.#wireBytes > CAPS.displaysBytes) {',
        to: 'if (this.#wireBytes < 0) {',
      },
    ],
    selected: [{ suite: 'hostile-displays', titles: ['are bounded, and count for nothing else'] }],
    quick: [],
  },
  {
    name: 'bound-of-a-session',
    defence: 'a session and its branches show a bounded amount',
    instead: 'they show any amount',
    patches: [
      {
        file: 'src/executor/run-displays.ts',
        from: 'if (this.#group.displaysBytes + wireBytes > MAX_SESSION_BYTES) {',
        to: 'if (wireBytes < 0) {',
      },
    ],
    selected: [{ suite: 'displays', titles: ['beyond the limit of a session are left out'] }],
    quick: [],
  },
]
