import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'

const SRC = join(import.meta.dirname, '../../../src')

/** The arguments of node for a host program, in which `ask(body)` lets the judge run a function with this body. */
function hostProgram(program: string, src = SRC): string[] {
  const door = JSON.stringify(join(src, 'judge/index.ts'))
  const ask = `
    import childProcess, { ChildProcess } from 'node:child_process'
    import fs from 'node:fs'
    import { syncBuiltinESMExports } from 'node:module'
    const ask = async (body) => {
      const { askJudge } = await import(${door})
      const module = new URL('data:text/javascript,' + encodeURIComponent('export const answer = () => {' + body + '}'))
      return askJudge({ module, input: () => null, inputBytes: 0, deadlineMs: 5000 })
    }
    const print = (value) => console.log(JSON.stringify(value))`
  return ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', `${ask}\n${program}`]
}

/** What a host prints, each line from JSON; it must print nothing on stderr. `limit` is a command of the shell that starts it. */
function run(program: string, { limit = ':', src = SRC } = {}): unknown[] {
  const args = ['-c', `${limit}; exec "$0" "$@"`, process.execPath, ...hostProgram(program, src)]
  const { stdout, stderr } = spawnSync('/bin/sh', args, { encoding: 'utf8', timeout: 30_000 })
  expect(stderr).toBe('')
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown)
}

// A process that was not started has no pid: Node's `kill` could signal the group of the host, or any process. So it is replaced here.
test('a host without descriptors is told so, lives on, and kills nothing', () => {
  const program = `
    ChildProcess.prototype.kill = function () { print({ killed: this.pid ?? null }) }
    await import(${JSON.stringify(join(SRC, 'judge/index.ts'))})
    const held = []
    try { for (;;) held.push(fs.openSync('/dev/null')) } catch { }
    print(await ask('return "a"'))
    print(await ask('return "b"'))
    for (const fd of held) fs.closeSync(fd)
    print(await ask('return "c"'))`
  const failed = { kind: 'failed', text: 'Error: spawn /bin/sh EMFILE' }
  expect(run(program, { limit: 'ulimit -n 64' })).toEqual([failed, failed, { kind: 'answer', text: 'c' }])
})

test('the process starts where there is no shell', () => {
  const program = `
    const { existsSync } = fs
    const { spawn } = childProcess
    fs.existsSync = (path) => path !== '/bin/sh' && existsSync(path)
    childProcess.spawn = (command, ...rest) => (print(command), spawn(command, ...rest))
    syncBuiltinESMExports()
    print(await ask('return "a"'))`
  expect(run(program)).toEqual([process.execPath, { kind: 'answer', text: 'a' }])
})

test('no program starts where the module of the process is missing, and the answer names it', async () => {
  const src = await mkdtemp(join(tmpdir(), 'sandglass-test-'))
  const filter = (path: string): boolean => !path.endsWith('/judge/child.ts')
  for (const room of ['judge', 'support', 'errors'])
    await cp(join(SRC, room), join(src, room), { recursive: true, filter })
  await cp(join(SRC, '../package.json'), join(src, 'package.json'))
  const program = `
    childProcess.spawn = (command) => print(command)
    syncBuiltinESMExports()
    print(await ask('return "a"'))`
  const text = 'Error: child.ts is missing: the package cannot be part of a bundle'
  expect(run(program, { src })).toEqual([{ kind: 'failed', text }])
  await rm(src, { recursive: true })
})

test('the judge has its full stack, even if the limit of the host is lower', () => {
  const nested = 'let list = []; for (let n = 0; n < 8000; n += 1) list = [list]; return JSON.stringify(list).length'
  const program = `print(await ask(${JSON.stringify(nested)}))`
  expect(run(program, { limit: 'ulimit -S -s 1024' })).toEqual([{ kind: 'answer', text: '16002' }])
})

test('the process holds no directory of the host', () => {
  expect(run(`print(await ask('return process.cwd()'))`)).toEqual([{ kind: 'answer', text: '/' }])
})

test('Ctrl-C in the terminal of a host that handles it does not end the process', async () => {
  const program = `
    process.on('SIGINT', () => print('interrupted'))
    const asked = ask('process.kill(-' + process.pid + ', "SIGINT"); for (let n = 0; n < 1e8; n += 1); return "a"')
    print(await asked)`
  const host = spawn(process.execPath, hostProgram(program), { stdio: ['ignore', 'pipe', 'inherit'], detached: true })
  const [printed] = await Promise.all([text(host.stdout), once(host, 'exit')])
  // On a busy machine, the question is tried twice, and the host finds the signal and the answer at once.
  expect([...new Set(printed.trim().split('\n'))].toSorted()).toEqual(['"interrupted"', '{"kind":"answer","text":"a"}'])
})
