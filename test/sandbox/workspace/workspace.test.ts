import { once } from 'node:events'
import { type ClientRequest, request } from 'node:http'
import { expect, test } from 'vitest'
import { z } from 'zod'
import type { Workspace } from '../../../src/options/index.ts'
import { createSandglass } from '../../../src/sandglass.ts'
import { leastOf } from '../../../src/testing/conformance/least-of.ts'
import { defineTool } from '../../../src/tools/index.ts'
import { inWorkspace } from '../../support/workspace-on-local.ts'

await inWorkspace((at) => {
  test('a script runs in a workspace and its files stay', async () => {
    const first = await at.ws.run('open("kept.txt", "w").write("of a script"); print("done"); emit_result(1)')
    expect([first.status, first.finalData, first.stdout]).toEqual(['completed', 1, 'done\n'])
    const second = await at.ws.run('emit_result(open("kept.txt").read())')
    expect(second.finalData).toBe('of a script')
    expect((await at.ws.exec('cat', ['kept.txt'])).stdout).toBe('of a script')
    expect(second.sandbox.id).toBe(at.ws.id)
  })

  test('sg.run takes a workspace, and its options; what chooses another sandbox is refused', async () => {
    const { finalData } = await at.sg.run('emit_result(x)', { workspace: at.ws, inputs: { x: 5 } })
    expect(finalData).toBe(5)
    const refused = at.sg.run('pass', { workspace: at.ws, leaseKey: 'k' })
    await expect(refused).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('a script may ask for less CPU time than the workspace has, and for no more', async () => {
    const busy =
      'import time\nuntil = time.monotonic() + 1\nwhile time.monotonic() < until: pass\nemit_result(time.process_time())'
    // A machine may count time that it gave to others, and so make it more.
    const usedSec = await leastOf(5, 0.3, async () => {
      const { finalData, warnings } = await at.ws.run(busy, { limits: { cpus: 0.2 } })
      expect(warnings).toEqual([])
      return Number(finalData)
    })
    expect(usedSec).toBeLessThan(0.3)
    await expect(at.ws.run('pass', { limits: { cpus: 2 } })).rejects.toMatchObject({ code: 'limit_not_enforceable' })
  })

  test('asTool runs the scripts of an agent in a workspace', async () => {
    const tool = at.sg.asTool({ workspace: at.ws })
    await tool.execute({ script: 'open("by-agent.txt", "w").write("x"); emit_result(1)' })
    expect(Buffer.from(await at.ws.get('by-agent.txt')).toString()).toBe('x')
  })

  test('a script in a workspace has tools, secrets, collected files and its own timeout', async () => {
    const double = defineTool({
      name: 'double',
      description: 'twice',
      input: z.object({ n: z.number() }),
      execute: ({ n }: { n: number }) => n * 2,
    })
    const withTools = await at.ws.run('emit_result(double(21))', { tools: [double] })
    expect([withTools.error, withTools.finalData]).toEqual([null, 42])
    const secret = await at.ws.run('import os; print(os.environ["KEY"])', { secrets: { KEY: 'sesame-open' } })
    expect(secret.stdout).toBe('[redacted:KEY]\n')
    const collected = await at.ws.run('open("c.txt", "w").write("c" * 300_000)', { collect: ['c.txt'] })
    expect(collected.files.map(({ path, size }) => [path, size])).toEqual([['c.txt', 300_000]])
    const late = await at.ws.run('while True: pass', { limits: { executionTimeoutSec: 0.5 } })
    expect([late.status, late.ending.cause]).toEqual(['timed-out', 'timeout'])
    expect((await at.ws.run('emit_result(1)')).finalData).toBe(1)
  })

  test('a flood of a script ends by its output limit, and a cancelled script ends alone', async () => {
    await using program = await at.ws.start('cat')
    const flood = await at.ws.run('while True: print("x" * 1000)', { limits: { maxOutputBytes: 100_000 } })
    expect(flood.errorKind).toBe('output_limit')
    for await (const event of at.ws.stream('print("begun", flush=True)\nwhile True: pass')) {
      if (event.type === 'stdout') break
    }
    await program.write('still here')
    expect((await program.poll({ waitMs: 30_000 })).text).toBe('still here')
  })

  test('inputs, results and answers of many MiB pass, and a neighbour is served meanwhile', async () => {
    const text = 'ä'.repeat(15 * 1024 * 1024)
    const echo = defineTool({
      name: 'echo_back',
      description: 'the same again',
      input: z.object({ text: z.string() }),
      execute: () => 'b'.repeat(8 * 1024 * 1024),
    })
    await using cat = await at.ws.start('cat')
    const options = { inputs: { text }, tools: [echo], limits: { maxOutputBytes: 64 * 1024 * 1024 } }
    let isDone = false
    const large = at.ws.run('emit_result([len(echo_back("x")), text])', options).finally(() => {
      isDone = true
    })
    await cat.write('served')
    expect([(await cat.poll({ waitMs: 30_000 })).text, isDone]).toEqual(['served', false])
    const { error, finalData } = await large
    expect(error).toBeNull()
    const [answered, returned] = finalData as [number, string]
    expect([answered, returned === text]).toEqual([8 * 1024 * 1024, true])
  })

  test('scripts and programs go on at once', async () => {
    const runs = Array.from({ length: 6 }, (_, index) => at.ws.run(`emit_result(${index})`))
    const programs = Array.from({ length: 6 }, (_, index) => at.ws.exec('echo', [String(index)]))
    expect((await Promise.all(runs)).map(({ finalData }) => finalData)).toEqual([0, 1, 2, 3, 4, 5])
    expect((await Promise.all(programs)).map(({ stdout }) => stdout.trim())).toEqual(['0', '1', '2', '3', '4', '5'])
  })

  test('an id that a run had already is refused', async () => {
    await at.ws.run('pass', { executionId: 'mine' })
    await expect(at.ws.run('pass', { executionId: 'mine' })).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(at.ws.run('pass', { executionId: '' })).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('a web server in a workspace answers over dial', async () => {
    await at.ws.exec('sh', ['-c', 'mkdir -p site; head -c 3000000 /dev/zero | tr "\\0" "x" > site/page'])
    await using server = await at.ws.start('python3', ['-u', '-m', 'http.server', '8123', '--bind', '127.0.0.1'], {
      cwd: 'site',
    })
    for (let text = ''; !text.includes('Serving'); text += (await server.poll({ waitMs: 5000 })).text)
      expect(server.status).toBe('running')
    const bodies = await Promise.all([fetchThrough(at.ws, 8123, '/page'), fetchThrough(at.ws, 8123, '/page')])
    expect(bodies.map(({ length }) => length)).toEqual([3_000_000, 3_000_000])
  })

  test('dial reports a port where nobody listens', async () => {
    const socket = at.ws.dial(9)
    const [error]: unknown[] = await once(socket, 'error').catch((thrown: unknown) => [thrown])
    expect(error).toMatchObject({ code: 'connection_refused' })
    expect(() => at.ws.dial(0)).toThrow('port')
  })

  test('the trust in a workspace is told', () => {
    expect(['separate', 'shared']).toContain(at.ws.trust)
  })

  test('close ends everything: activities settle, and nothing is left', async () => {
    const ws = await at.sg.workspace()
    const program = await ws.start('sleep', ['300'])
    const running = ws.exec('sleep', ['300'])
    const socket = ws.dial(9)
    socket.on('error', () => undefined)
    const begun = Promise.withResolvers<void>()
    const script = ws.run('print("begun", flush=True)\nimport time; time.sleep(300)', {
      onEvent: ({ type }) => type === 'stdout' && begun.resolve(),
    })
    await begun.promise
    const outcome = Promise.allSettled([program.exited, running, script])
    await Promise.all([ws.close(), ws.close()])
    expect(await outcome).toMatchObject([
      { reason: { code: 'workspace_closed' } },
      { reason: { code: 'workspace_closed' } },
      {
        value: {
          status: 'cancelled',
          errorKind: 'cancelled',
          error: 'the run was cancelled: the workspace is closed; open another one with sg.workspace()',
          ending: { cause: 'cancelled', by: 'host' },
          stdout: 'begun\n',
        },
      },
    ])
    await expect(ws.exec('true')).rejects.toMatchObject({ code: 'workspace_closed' })
    await expect(ws.run('pass')).rejects.toMatchObject({ code: 'workspace_closed' })
    expect(() => ws.dial(80)).toThrow('closed')
    await program.close()
  })

  test('closing a Sandglass closes its workspaces', async () => {
    const sg = await createSandglass({ engine: 'local', poolSize: 0 })
    const ws = await sg.workspace()
    await sg.close()
    await expect(ws.exec('true')).rejects.toMatchObject({ code: 'workspace_closed' })
    await expect(sg.workspace()).rejects.toMatchObject({ code: 'pool_closed' })
  })

  test('an aborted signal closes a workspace', async () => {
    const controller = new AbortController()
    const ws = await at.sg.workspace({ signal: controller.signal })
    controller.abort()
    await expect(ws.exec('true')).rejects.toMatchObject({ code: 'workspace_closed' })
    await expect(at.sg.workspace({ signal: controller.signal })).rejects.toMatchObject({ code: 'aborted' })
  })
})

function fetchThrough(ws: Workspace, port: number, path: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const asked: ClientRequest = request({ createConnection: () => ws.dial(port), path }, (response) => {
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => parts.push(part))
      response.on('end', () => resolve(Buffer.concat(parts)))
    })
    asked.on('error', reject)
    asked.end()
  })
}
