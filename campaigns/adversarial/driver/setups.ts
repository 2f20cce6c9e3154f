import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { RunOptions } from '../../../src/options/index.ts'
import { type Answer, describeAnswer } from './answer.ts'
import { TOOL_SETUPS, twoAtOnce } from './case-tools.ts'
import { type Fixtures, valueOf } from './fixtures.ts'
import type { CaseState, Verify } from './case-state.ts'
import type { Setup } from './setup.ts'

const withSecretA = (fixtures: Fixtures): RunOptions => ({ secrets: { TOOL_A_KEY: valueOf(fixtures, 'SECRET_A') } })

const everyAnswer =
  (what: string, holds: (answer: Answer) => boolean): Verify =>
  (answers) => {
    const bad = answers.find((answer) => !holds(answer))
    return bad === undefined ? undefined : `wanted ${what}; the run was: ${describeAnswer(bad)}`
  }

const sameEachTime: Verify = (answers) => {
  const outcomes = new Set(
    answers.map(({ result }) => JSON.stringify([result?.status, result?.finalData, result?.error])),
  )
  return outcomes.size === 1 ? undefined : `different outcomes: ${[...outcomes].join(' / ')}`
}

/** Variables of the host that a sandbox must not have. */
const ENVIRONMENT = (fixtures: Fixtures): Readonly<Record<string, string>> => ({
  HOST_SECRET: valueOf(fixtures, 'HOST_ENV_CANARY'),
  AWS_SECRET_ACCESS_KEY: valueOf(fixtures, 'HOST_ENV_CANARY'),
  OPENAI_API_KEY: valueOf(fixtures, 'HOST_ENV_CANARY'),
  npm_config_token: valueOf(fixtures, 'HOST_ENV_CANARY'),
  OTHER_TOOL_KEY: valueOf(fixtures, 'SECRET_OF_OTHER_TOOL'),
  NODE_OPTIONS: '--no-warnings',
  SSH_AUTH_SOCK: '/tmp/agent.sock',
  HTTP_PROXY: 'http://127.0.0.1:9',
  LD_PRELOAD: 'libm.so.6',
  LD_LIBRARY_PATH: '/nonexistent',
  PYTHONPATH: '/nonexistent',
  PYTHONSTARTUP: '/nonexistent/startup.py',
  PYTHONINSPECT: '1',
  BASH_ENV: '/nonexistent/bashenv',
  ENV: '/nonexistent/env',
  DOCKER_HOST: 'tcp://127.0.0.1:9',
  KUBECONFIG: '/nonexistent/kubeconfig',
})

/** Setups by case id. A case with a `setup` text fails without an entry here. */
export const SETUPS: ReadonlyMap<string, Setup> = new Map<string, Setup>([
  ...TOOL_SETUPS,
  [
    'WAS-006',
    {
      expect: everyAnswer('no path of the host', ({ result }) => isDeepStrictEqual(result?.finalData, { hits: [] })),
    },
  ],
  ['CTL-013', { expect: everyAnswer('SystemExit', ({ result }) => result?.error?.includes('SystemExit') === true) }],
  ['CTL-014', { repeat: 20, expect: sameEachTime }],
  ['CTL-015', { expect: everyAnswer('the late error as a warning', hasLateError) }],
  ['CTL-019', { repeat: 3, expect: sameEachTime }],
  [
    'CTL-026',
    { run: () => ({ collect: ['**'] }), expect: everyAnswer('a crash', ({ errorKind }) => errorKind === 'crash') },
  ],
  [
    'CTL-031',
    { expect: everyAnswer('a RecursionError', ({ result }) => result?.error?.includes('RecursionError') === true) },
  ],
  ['RES-001', { expect: everyAnswer('a timeout', ({ errorKind }) => errorKind === 'timeout') }],
  ['RES-019', { expect: everyAnswer('CPU time within the quota', withinQuota) }],
  ['RES-029', { run: () => ({ onIntermediate: () => sleep(50) }) }],
  ['RES-032', { run: () => ({ collect: ['out/**'] }), expect: everyAnswer('the file as it is', hasBomb) }],
  ['RES-037', { open: () => ({ poolSize: 2, maxOverflow: 0 }), beside: runSecondWithTimers }],
  ['PRO-013', { repeat: 5, expect: everyAnswer('the last of equal keys', hasData({ ok: 1 })) }],
  ['PRO-015', { expect: everyAnswer('both logs and the closed channel', keptLogs) }],
  ['PRO-020', { expect: everyAnswer('the NULs', ({ result }) => result?.stdout === 'a\0b\0\n\0\n') }],
  ['PRO-029', { repeat: 2, expect: sameEachTime }],
  [
    'PRO-030',
    { expect: everyAnswer('the type of the key', ({ result }) => result?.error?.includes('tuple') === true) },
  ],
  ['PRO-035', { expect: everyAnswer('every label in order', inOrder) }],
  ['PRO-039', { expect: everyAnswer('the error', ({ result }) => result?.error === 'boom') }],
  ['PRO-042', { beside: () => (answers) => (answers.length === 2 ? undefined : 'two runs were wanted') }],
  ['PRO-048', { beside: runEmptySteps }],
  [
    'PRO-050',
    { expect: everyAnswer('a SyntaxError', ({ result }) => /SyntaxError|null bytes/.test(result?.error ?? '')) },
  ],
  ['ISO-006', { child: ({ markedFd }) => ({ fd9: markedFd }) }],
  ['ISO-008', {}], // the canary file is a fixture
  [
    'ISO-011',
    { open: ({ packages }) => ({ packages }), expect: everyAnswer('a refusal', wasRefused('PermissionError')) },
  ],
  ['ISO-023', { child: (fixtures) => ({ env: ENVIRONMENT(fixtures) }), beside: useSecretOfOtherTool }],
  ['ISO-051', { run: withSecretA, expect: everyAnswer('no host path', hasMember('host_paths', false)) }],
  ['SEC-001', { child: (fixtures) => ({ env: ENVIRONMENT(fixtures) }) }],
  ['SEC-002', { child: (fixtures) => ({ env: ENVIRONMENT(fixtures) }) }],
  ['SEC-004', { beside: useSecretInPreviousRun }],
  [
    'SEC-006',
    {
      run: withSecretA,
      expect: everyAnswer('a marker in place of the secret', hasMember('k', '[redacted:TOOL_A_KEY]')),
    },
  ],
  [
    'SEC-009',
    { run: (fixtures) => ({ ...withSecretA(fixtures), collect: ['out/**'] }), expect: checkSecretFileWarning },
  ],
  ['SEC-012', { run: withSecretA }],
  [
    'FS-040',
    {
      run: () => ({ collect: ['out/**'] }),
      expect: everyAnswer('the file without its attributes', hasFile({ path: 'out/x', size: 1 }, 'x')),
    },
  ],
  ['NET-008', {}], // the echo server is a fixture
  ['NET-010', {}], // the socket is a fixture
  ['NET-011', { beside: startListeningPeer }],
  ['NET-015', {}], // the listener is a fixture
])

function hasLateError({ result }: Answer): boolean {
  return result?.warnings.some(({ message }) => message.includes('ValueError: late')) === true
}

function hasData(wanted: unknown): (answer: Answer) => boolean {
  return ({ result }) => JSON.stringify(result?.finalData) === JSON.stringify(wanted)
}

function hasMember(name: string, value: unknown): (answer: Answer) => boolean {
  return ({ result }) => (result?.finalData as Record<string, unknown> | null)?.[name] === value
}

function wasRefused(error: string): (answer: Answer) => boolean {
  return hasMember('err', error)
}

/** At most half a CPU for the duration of the run, plus a quarter. */
function withinQuota({ result }: Answer): boolean {
  if (result === null) return false
  const { cpu } = result.finalData as { cpu: number }
  return cpu <= 0.5 * (result.durationMs / 1000) * 1.25
}

function hasBomb({ result }: Answer): boolean {
  return result?.files.length === 1 && result.files[0]?.size === result.finalData
}

/** Exactly one file with these fields, this content and the right digest. */
function hasFile(is: Readonly<Record<string, unknown>>, content: string): (answer: Answer) => boolean {
  return ({ result }) => {
    const [file, ...others] = result?.files ?? []
    if (file === undefined || others.length > 0) return false
    const sha256 = createHash('sha256').update(content).digest('hex')
    return isDeepStrictEqual({ ...file, content: Buffer.from(file.content).toString() }, { ...is, sha256, content })
  }
}

function keptLogs({ result }: Answer): boolean {
  const logs = result?.logs.map(({ message }) => message).join()
  return logs === 'a,b' && result?.error?.includes('stdout closed unexpectedly') === true
}

function inOrder({ result }: Answer): boolean {
  const next = new Map<string, number>()
  return (result?.intermediates ?? []).every(({ label, data }) => {
    const wanted = next.get(label) ?? 0
    next.set(label, wanted + 1)
    return data === wanted
  })
}

async function checkSecretFileWarning(answers: readonly Answer[]): Promise<string | undefined> {
  const [answer] = await Promise.resolve(answers)
  const flagged = answer?.result?.warnings.some(({ code }) => code === 'secret_in_file') === true
  return flagged ? undefined : 'the secret in the collected file is not flagged'
}

const MAKE_TIMERS = `import ctypes, os
libc = ctypes.CDLL(None)
t = ctypes.c_void_p()
timers = 0
while timers < 100 and libc.timer_create(0, None, ctypes.byref(t)) == 0:
    timers += 1
children = 0
for _ in range(10):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    children += 1
emit_result([timers, children])`

/**
 * Starts a second run one second after the first, which by then holds all timers that it can get. Both sandboxes are
 * warm, so that the start of a sandbox does not count.
 */
async function runSecondWithTimers({ runner, options }: CaseState): Promise<Verify> {
  const both = new Set((await twoAtOnce(runner)).map(({ result }) => result?.sandbox.id))
  if (both.size !== 2) return () => 'the two runs did not have two sandboxes'
  const { promise, resolve } = Promise.withResolvers<Answer>()
  let over = false
  setTimeout(() => {
    runner
      .run(MAKE_TIMERS, options)
      .finally(() => (over = true))
      .then(resolve, resolve)
  }, 1000)
  return async () => {
    const beside = over
    const answer = await promise
    if (!beside) return 'the second run did not end while the first held its timers'
    return hasData([100, 10])(answer) ? undefined : `the second run: ${describeAnswer(answer)}`
  }
}

async function runEmptySteps({ runner }: CaseState): Promise<Verify> {
  const scripts = ['', '   \n\n', '# only a comment\n']
  const answers = await Promise.all(scripts.map((script) => runner.run(script, { mode: 'interactive' })))
  return () => everyAnswer('an empty step', ({ result }) => result?.status === 'step-done')(answers)
}

/** Runs a script with the secret of another tool first: broker and zygote could remember it. */
async function useSecretOfOtherTool({ runner, context }: CaseState): Promise<Verify> {
  const secret = valueOf(context.fixtures, 'SECRET_OF_OTHER_TOOL')
  const first = await runner.run('import os\nemit_result(len(os.environ["OTHER_TOOL_KEY"]))', {
    secrets: { OTHER_TOOL_KEY: secret },
  })
  return () => (first.result?.finalData === secret.length ? undefined : `the run before: ${describeAnswer(first)}`)
}

async function useSecretInPreviousRun({ runner, warm, context }: CaseState): Promise<Verify> {
  const secret = valueOf(context.fixtures, 'SECRET_OF_PREVIOUS_RUN')
  const first = await runner.run('import os\nemit_result(len(os.environ["PREVIOUS"]))', {
    secrets: { PREVIOUS: secret },
  })
  return (answers) => {
    if (first.result?.finalData !== secret.length) return `the run before: ${describeAnswer(first)}`
    const same = answers.every(({ result }) => result?.sandbox.id === first.result?.sandbox.id)
    return same && warm !== undefined ? undefined : 'the run was not on the same sandbox'
  }
}

const LISTEN = (port: string): string => `import socket
s = socket.socket(); s.bind(('0.0.0.0', ${port})); s.listen(); s.settimeout(30)
emit_intermediate('listening')
s.accept()
emit_result('contacted')`

async function startListeningPeer({ context: { engine, fixtures } }: CaseState): Promise<Verify> {
  const peer = await engine.open({ poolSize: 1 })
  const listening = Promise.withResolvers<void>()
  const left = new AbortController()
  const run = peer.run(LISTEN(valueOf(fixtures, 'PEER_PORT')), {
    onIntermediate: () => listening.resolve(),
    signal: left.signal,
  })
  void run.finally(() => listening.resolve())
  await listening.promise
  return async () => {
    left.abort()
    const { status, error } = await run
    await peer.close()
    return status === 'cancelled' ? undefined : `the peer did not listen all the time: ${status} ${error}`
  }
}
