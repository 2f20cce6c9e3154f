import { readdirSync, readFileSync } from 'node:fs'
import { once } from 'node:events'
import { afterAll, describe, expect, test } from 'vitest'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { cliProgram } from '../../support/cli/program.ts'
import { lastLine, linesOf, makeCli } from '../../support/cli/sandglass.ts'

const { skip } = await requireLocalEngine()
const cli = makeCli()
afterAll(() => cli[Symbol.dispose]())

const FOREVER = 'print("up", flush=True)\nwhile True: pass\n'

describe.skipIf(skip)('a signal', () => {
  test.each(['SIGINT', 'SIGTERM'] as const)(
    '%%s cancels the run, prints its partial result and leaves nothing',
    async (signal) => {
      const running = cli.start(['run', '-', '--events'])
      running.child.stdin.end(`emit_intermediate("half", 50)\n${FOREVER}`)
      await running.said('"text":"up')
      running.child.kill(signal)
      running.child.kill(signal) // a second signal changes nothing
      const ended = await running.ended
      expect(ended.code).toBe(130)
      expect(lastLine(ended)).toMatchObject({
        type: 'result',
        status: 'cancelled',
        error_kind: 'cancelled',
        stdout: 'up\n',
        intermediates: [{ label: 'half', data: 50 }],
      })
      expect(await resourcesOf(lastLine(ended).sandbox?.id)).toEqual([])
    },
  )

  test('before the script has arrived on stdin starts nothing and has the same exit code', async () => {
    const running = cli.start(['run', '-', '--json'])
    // All handlers are installed when the last one, SIGHUP's, is; Node itself has one for SIGTERM from the start.
    await once(running.child, 'spawn')
    const status = `/proc/${running.child.pid}/status`
    while (!catches(readFileSync(status, 'utf8'), 1)) await new Promise(setImmediate)
    running.child.kill('SIGTERM')
    const ended = await running.ended
    expect(ended.code).toBe(130)
    expect(lastLine(ended)).toMatchObject({ type: 'error', status: 'cancelled', code: 'aborted' })
  })

  test('a reader that closes the pipe cancels the run without a message', async () => {
    const running = cli.start(['run', '-', '--max-output', '4g'])
    running.child.stdin.end('while True: print("x" * 1000)')
    await running.said('xxx')
    running.child.stdout.destroy()
    expect(await running.ended).toMatchObject({ code: 130, stderr: '' })
  })

  test('the value of a secret is on no command line while the script has it, and in no output', async () => {
    const value = `s3cr3t-${process.hrtime.bigint()}`
    const running = cli.start(['run', '-', '--events', '--secret', 'TOKEN'], { TOKEN: value })
    running.child.stdin.end(
      'import os, time\nprint(os.environ["TOKEN"])\nprint("up", len(os.environ["TOKEN"]), flush=True)\ntime.sleep(60)',
    )
    await running.said(`up ${value.length}`)
    const commandLines = readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map((pid) => quietly(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8')))
    expect(commandLines.some((line) => line.includes(`${cliProgram()}\0run`))).toBe(true)
    expect(commandLines.filter((line) => line.includes(value))).toEqual([])
    running.child.kill('SIGINT')
    const { stdout, stderr } = await running.ended
    expect(stdout + stderr).not.toContain(value)
  })

  test('a sandbox that is killed from outside is sandbox-lost, exit 7', async () => {
    const running = cli.start(['run', '-', '--events'])
    running.child.stdin.end(FOREVER)
    await running.said('"text":"up')
    const started = linesOf({ stdout: running.stdout().split('\n', 1)[0] ?? '' })[0]
    const found = await resourcesOf(started?.sandbox_id)
    const pids = found.filter(({ kind }) => kind === 'process').map(({ id }) => Number(id))
    expect(pids.length).toBeGreaterThan(0)
    for (const pid of pids) quietly(() => String(process.kill(pid, 'SIGKILL')))
    const ended = await running.ended
    expect(lastLine(ended)).toMatchObject({ status: 'sandbox-lost', error_kind: 'infrastructure' })
    expect(ended.code).toBe(7)
  })
})

test('doctor reports the limits in force, ps and prune the resources', async () => {
  const [doctor, ps, prune, text] = await Promise.all([
    cli.run(['doctor', '--json'], { env: { DOCKER_HOST: 'unix:///nonexistent/docker.sock' } }),
    cli.run(['ps', '--json']),
    cli.run(['prune', '--json']),
    cli.run(['doctor']),
  ])
  const findings = JSON.parse(doctor.stdout) as {
    v: number
    auto: string | null
    engines: { name: string; usable: boolean }[]
  }
  expect(findings).toMatchObject({
    v: 1,
    auto: skip ? 'pyodide' : 'local',
    engines: [
      { name: 'local', usable: !skip },
      { name: 'docker', usable: false, level: 'none', reasons: [{ code: 'docker_unreachable' }] },
      skip
        ? { name: 'pyodide', usable: true, level: 'language-only', reasons: [{ code: 'language_only' }] }
        : { name: 'pyodide', usable: true, level: 'os-sandbox', reasons: [] },
    ],
  })
  expect([doctor.code, text.code]).toEqual([0, 0])
  expect(text.stdout).toContain(skip ? '✗ local' : '✓ local')
  // Other tests on this machine may have sandboxes, so only the format is checked.
  for (const { code, stdout, stderr } of [ps, prune]) {
    expect([code, stderr, Array.isArray(JSON.parse(stdout))]).toEqual([0, '', true])
  }
})

interface Resource {
  readonly kind: string
  readonly id: string
  readonly sandbox: string | null
}

/** The resources that `ps` shows for one sandbox. */
async function resourcesOf(sandbox: string | undefined): Promise<Resource[]> {
  const { stdout } = await cli.run(['ps', '--json'])
  return (JSON.parse(stdout) as Resource[]).filter((one) => one.sandbox === sandbox)
}

/** True when a process has a handler for a signal. */
function catches(status: string, signal: number): boolean {
  const mask = BigInt(`0x${/^SigCgt:\s*(\w+)$/m.exec(status)?.[1] ?? '0'}`)
  return ((mask >> BigInt(signal - 1)) & 1n) === 1n
}

function quietly(read: () => string): string {
  try {
    return read()
  } catch {
    return '' // it ended meanwhile
  }
}
