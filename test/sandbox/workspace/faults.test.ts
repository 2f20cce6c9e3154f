import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { get } from 'node:http'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import type { Workspace } from '../../../src/options/index.ts'
import { leastOf, measureMs } from '../../../src/testing/conformance/least-of.ts'
import { eventually } from '../../support/eventually.ts'
import { allProcesses, commandLineOf } from '../../support/processes.ts'
import { inWorkspace } from '../../support/workspace-on-local.ts'

const HOST = fileURLToPath(new URL('../../support/doomed-workspace.main.ts', import.meta.url))
const FEW_DESCRIPTORS = fileURLToPath(new URL('../../support/few-descriptors.main.ts', import.meta.url))
const MiB = 1024 * 1024

await inWorkspace((at) => {
  test('WS-04: a full workspace refuses a file as a whole, and takes files again when there is room', async () => {
    async function* zeros(): AsyncGenerator<Uint8Array, void, void> {
      for (;;) yield new Uint8Array(MiB)
    }
    await expect(at.ws.put({ 'full/a': 'kept', 'full/b': { stream: zeros() } })).rejects.toMatchObject({
      code: 'no_space',
    })
    expect(await pathsIn(at.ws, 'full')).toEqual(['a'])
    await at.ws.exec('sh', ['-c', 'cat /dev/zero > full/c'])
    await expect(at.ws.put({ 'full/d': new Uint8Array(MiB) })).rejects.toMatchObject({ code: 'no_space' })
    await at.ws.remove('full', { recursive: true })
    await at.ws.put({ d: new Uint8Array(MiB) })
    await at.ws.remove('d')
  })

  test('WS-07: 100,000 files are listed and removed, and a neighbour is served meanwhile', async () => {
    const make =
      'import os\nos.mkdir("many")\nfd = os.open("many", os.O_RDONLY)\n' +
      'for i in range(100_000): os.close(os.open(str(i), os.O_CREAT | os.O_WRONLY, dir_fd=fd))'
    await at.ws.exec('python3', ['-c', make])
    await using cat = await at.ws.start('cat')
    let isCounted = false
    const counted = countOf(at.ws.collect('many/**', { maxFiles: 100_000 })).finally(() => {
      isCounted = true
    })
    await cat.write('served')
    expect([(await cat.poll({ waitMs: 10_000 })).text, isCounted]).toEqual(['served', false])
    expect(await counted).toBe(100_000)
    const stop = new AbortController()
    const removal = at.ws.remove('many', { recursive: true, signal: stop.signal })
    stop.abort()
    await expect(removal).rejects.toMatchObject({ code: 'aborted' })
    expect((await at.ws.stat('many')).kind).toBe('directory')
    await at.ws.remove('many', { recursive: true })
  })

  test('a digest without an end serves its neighbours, and ends by its signal', async () => {
    await at.ws.exec('truncate', ['-s', '1P', 'endless'])
    for (const path of ['endless', '']) {
      const stop = new AbortController()
      const end = codeOf(at.ws.digest(path, { signal: stop.signal }))
      expect((await at.ws.exec('echo', ['served'])).stdout).toBe('served\n')
      stop.abort()
      expect(await end).toBe('aborted')
    }
    await at.ws.remove('endless')
  })

  test('the close of a workspace ends a digest', async () => {
    const ws = await at.sg.workspace()
    await ws.exec('truncate', ['-s', '1P', 'endless'])
    const end = codeOf(ws.digest('endless'))
    // It is under way: a later question is answered.
    await ws.stat('endless')
    await ws.close()
    expect(await end).toBe('workspace_closed')
  })

  test('WS-07: a link that is swapped during 1,000 collects leads nowhere', async () => {
    const swap = [
      'import os',
      'os.makedirs("swap/in"); open("swap/in/passwd", "w").write("inside")',
      'print("on", flush=True)',
      'while True:',
      '    os.rename("swap/in", "swap/away"); os.symlink("/etc", "swap/in")',
      '    os.unlink("swap/in"); os.rename("swap/away", "swap/in")',
    ].join('\n')
    await using swapper = await at.ws.start('python3', ['-c', swap])
    await swapper.poll({ waitMs: 5000 })
    const seen = new Set<string>()
    for (let round = 0; round < 1000; round += 1)
      for await (const file of at.ws.collect(['swap/in/passwd', 'swap/in/*']))
        seen.add(
          await file.bytes().then(
            (bytes) => Buffer.from(bytes).toString(),
            ({ code }: { code: string }) => code,
          ),
        )
    for (const text of seen) expect(['inside', 'path_not_found', 'path_refused', 'workspace_io']).toContain(text)
    expect(seen).toContain('inside')
  })

  test('WS-14: a daemon that holds the terminal does not outlive its program', async () => {
    const script = 'trap "" HUP TERM; setsid sh -c "trap \'\' HUP TERM; sleep 4242" & echo up; sleep 0.05'
    const { stdout, durationMs } = await at.ws.exec('sh', ['-c', script], { tty: true })
    expect([stdout, durationMs < 20_000]).toEqual(['up\r\n', true])
    expect((await at.ws.exec('sh', ['-c', 'cat /proc/[0-9]*/cmdline | tr "\\0" " "'])).stdout).not.toContain(
      'sleep 4242',
    )
  })

  test('WS-14: a server goes on answering beside a fork bomb', async () => {
    const serve = [
      'from http.server import *',
      'class Handler(BaseHTTPRequestHandler):',
      '    def do_GET(self): self.send_response(200); self.end_headers(); self.wfile.write(b"ok")',
      'server = HTTPServer(("127.0.0.1", 8124), Handler); print("on", flush=True); server.serve_forever()',
    ].join('\n')
    await using server = await at.ws.start('python3', ['-c', serve])
    await server.poll({ waitMs: 10_000 })
    const timeOfEnd = async (): Promise<number> => {
      const bomb = await at.ws.start('python3', [
        '-c',
        'import os\nwhile True:\n    try: os.fork()\n    except OSError: pass',
      ])
      for (let round = 0; round < 10; round += 1) expect(await answerOf(at.ws, 8124)).toBe('ok')
      return measureMs(() => bomb.close())
    }
    expect(await leastOf(3, 1000, timeOfEnd)).toBeLessThan(1000)
    expect(await answerOf(at.ws, 8124)).toBe('ok')
  })

  test('a program for which the broker has no descriptors left is refused, and the workspace goes on', () => {
    const limited = ['-c', 'ulimit -n 160 && exec "$0" "$@"', process.execPath, FEW_DESCRIPTORS]
    const { stdout, stderr } = spawnSync('sh', limited, { encoding: 'utf8', timeout: 55_000 })
    expect([stdout, stderr]).toEqual(['{"refused":["sandbox_busy"],"stdout":"served\\n"}\n', ''])
  })

  test('nothing of three activities is left a second after their host was killed', { timeout: 60_000 }, async () => {
    const mark = String(100_000 + process.pid)
    const left = (): number[] =>
      allProcesses().flatMap(({ pid }) => (commandLineOf(pid).startsWith(`sleep\0${mark}`) ? [pid] : []))
    const awaitLeft = async (count: number, withinMs: number): Promise<void> =>
      expect(
        await eventually(() => (left().length === count ? undefined : `${left().length} run`), withinMs),
      ).toBeUndefined()
    const timeOfEnd = async (): Promise<number> => {
      const host = spawn(process.execPath, [HOST, mark], { stdio: ['ignore', 'pipe', 'inherit'] })
      await once(host.stdout, 'data')
      await awaitLeft(4, 5000)
      host.kill('SIGKILL')
      return measureMs(() => awaitLeft(0, 10_000))
    }
    expect(await leastOf(3, 1000, timeOfEnd)).toBeLessThan(1000)
  })
})

async function pathsIn(ws: Workspace, directory: string): Promise<string[]> {
  return (await Array.fromAsync(ws.list(directory))).map(({ path }) => path)
}

async function countOf(items: AsyncIterable<unknown>): Promise<number> {
  let count = 0
  for await (const _ of items) count += 1
  return count
}

function answerOf(ws: Workspace, port: number): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  get({ path: '/', createConnection: () => ws.dial(port) }, (response) => {
    response.toArray().then((chunks) => resolve(Buffer.concat(chunks as Buffer[]).toString()), reject)
  }).on('error', reject)
  return promise
}

/** The code of the error with which it ends; undefined if it ends without. */
async function codeOf(call: Promise<unknown>): Promise<string | undefined> {
  return call.then(
    () => undefined,
    ({ code }: { code: string }) => code,
  )
}
