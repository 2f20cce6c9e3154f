import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const SRC = join(import.meta.dirname, '../../../src')

/** A program of a host, for `node -e`: `ask(body)` asks a question whose answer is that of a function with this body. */
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

// Node would send the signal to process 0, which is the group of the host, or to any other number: `kill` is replaced here.
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
