import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { processOf } from '../../support/processes.ts'
import { linesOf, makeCli } from '../../support/cli/sandglass.ts'

const { skip } = await requireLocalEngine()
const cli = makeCli()
afterAll(() => cli[Symbol.dispose]())

/** The format in docs/cli.md. An unlisted key or kind is an error, so that a new one gets documented. */
const resources = z.array(
  z.strictObject({
    kind: z.enum(['process', 'cgroup', 'record', 'corrupt-record', 'directory', 'uid-lock', 'container']),
    id: z.string().min(1),
    sandbox: z.string().min(1).nullable(),
    owner: z.enum(['alive', 'gone', 'unknown']),
    uid: z.int().min(1).nullable(),
  }),
)
type Resources = z.infer<typeof resources>

/** The resources of one sandbox and of this state directory: other tests have sandboxes on this machine, too. */
async function resourcesOf(command: 'ps' | 'prune', sandbox = 'none'): Promise<Resources> {
  const { stdout, stderr, code } = await cli.run([command, '--json'])
  expect([code, stderr, stdout.endsWith('\n'), stdout.split('\n').length]).toEqual([0, '', true, 2])
  return resources
    .parse(JSON.parse(stdout))
    .filter((one) => one.sandbox === sandbox || one.id.startsWith(cli.directory))
}

/** The number of resources of each kind. */
function kinds(found: Resources): Record<string, number> {
  return Object.fromEntries(
    Map.groupBy(found, ({ kind }) => kind)
      .entries()
      .map(([kind, all]) => [kind, all.length]),
  )
}

describe.skipIf(skip)('ps and prune', () => {
  test('show a run with its resources, then the orphans of its killed host, then nothing', async () => {
    expect([await resourcesOf('ps'), await resourcesOf('prune')]).toEqual([[], []])

    const running = cli.start(['run', '-', '--events'])
    running.child.stdin.end('print("up", flush=True)\nwhile True: pass\n')
    await running.said('"text":"up')
    const [started] = linesOf({ stdout: running.stdout().split('\n', 1)[0] ?? '' })
    const sandbox = started?.sandbox_id ?? ''
    const living = await resourcesOf('ps', sandbox)
    const { process = 0, cgroup = 0, ...others } = kinds(living)
    expect(others).toEqual({ record: 1, 'uid-lock': 1 })
    expect(process).toBeGreaterThanOrEqual(4) // bubblewrap, broker, zygote, script
    expect(new Set(living.map(({ owner }) => owner))).toEqual(new Set(['alive']))
    expect(living.find(({ kind }) => kind === 'uid-lock')).toMatchObject({
      id: join(cli.directory, 'state/slots/0'),
      sandbox: null,
    })
    expect(await resourcesOf('prune', sandbox)).toEqual([])
    const { stdout } = await cli.run(['ps'])
    const lines = stdout.split('\n')
    expect(lines[0]).toMatch(/^KIND +OWNER +UID +SANDBOX +ID$/)
    expect(lines.filter((line) => /^uid-lock +alive +\S+ +- +\S+slots\/0$/.test(line))).toHaveLength(1)

    running.child.kill('SIGKILL')
    await running.ended
    const pids = living.filter(({ kind }) => kind === 'process').map(({ id }) => Number(id))
    const left = await eventually(
      () => (pids.some((pid) => processOf(pid) !== undefined) ? 'something lives' : undefined),
      10_000,
    )
    expect(left).toBeUndefined()
    const gone = await resourcesOf('ps', sandbox)
    expect(kinds(gone)).toEqual(kinds(living.filter(({ kind }) => kind !== 'process')))
    expect(kinds(gone)['cgroup'] ?? 0).toBe(cgroup)
    expect(new Set(gone.map(({ owner }) => owner))).toEqual(new Set(['gone']))
    const byId = (a: Resources[number], b: Resources[number]): number => (a.id < b.id ? -1 : 1)
    expect((await resourcesOf('prune', sandbox)).toSorted(byId)).toEqual(gone.toSorted(byId))
    expect([await resourcesOf('ps', sandbox), await resourcesOf('prune', sandbox)]).toEqual([[], []])
  })

  test('show the packages of a killed executor of a code agent, then remove them', async () => {
    using own = makeCli()
    const agent = join(import.meta.dirname, '../../../src/code-agent/index.ts')
    const script = `const { LocalPythonExecutor } = await import(${JSON.stringify(agent)})
      const executor = new LocalPythonExecutor()
      await executor.execute([], '', [])
      setInterval(() => {}, 1e6)
      process.send('ready')`
    // The sandboxes of a root have another uid.
    chmodSync(own.directory, 0o755)
    const host = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', '-e', script], {
      env: { ...process.env, TMPDIR: own.directory, SANDGLASS_STATE_DIR: join(own.directory, 'state') },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    await once(host, 'message')
    const caches = (): string[] => readdirSync(own.directory).filter((name) => name.startsWith('sandglass-executor-'))
    expect(caches()).toHaveLength(1)
    const orphans = async (command: 'ps' | 'prune'): Promise<Resources> => {
      const { stdout } = await own.run([command, '--json'], { env: { TMPDIR: own.directory } })
      return resources.parse(JSON.parse(stdout)).filter(({ id }) => id.includes('/sandglass-executor-'))
    }
    expect(await orphans('ps')).toEqual([])
    host.kill('SIGKILL')
    await once(host, 'exit')
    const left = caches().map((name) => ({
      kind: 'directory',
      id: join(own.directory, name),
      sandbox: null,
      owner: 'gone',
      uid: null,
    }))
    expect(left).toHaveLength(1)
    expect(await orphans('ps')).toEqual(left)
    expect(await orphans('prune')).toEqual(left)
    expect(caches()).toEqual([])
  })
})
