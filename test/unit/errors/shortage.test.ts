import { spawnSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { shortageError } from '../../../src/errors/index.ts'

/** Starts a program with 47 descriptors in a process that may have 40, and returns the error. */
const SPAWN = `
import { execFileSync, spawn } from 'node:child_process'
import { openSync } from 'node:fs'
const nothing = openSync('/dev/null')
execFileSync('prlimit', ['--pid', String(process.pid), '--nofile=40:'])
try {
  spawn('/bin/true', [], { stdio: ['pipe', ...Array(46).fill(nothing)] })
} catch ({ code, syscall, message }) {
  console.log(JSON.stringify({ code, syscall, message }))
}
`

describe.skipIf(process.platform !== 'linux')('a process that needs more descriptors than the limit', () => {
  test('is reported as a shortage of descriptors, although the kernel says invalid', () => {
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', SPAWN], {
      encoding: 'utf8',
    })
    expect(stderr).toBe('')
    const told = JSON.parse(stdout) as { code: string; syscall: string; message: string }
    expect([told.code, told.syscall]).toEqual(['EINVAL', 'spawn'])
    const { code, message } = shortageError(Object.assign(new Error(told.message), told), 'no process') ?? {}
    expect([code, message]).toEqual([
      'sandbox_setup_failed',
      `no process: this process has no file descriptor left (EMFILE; see ulimit -n): ${told.message}`,
    ])
  })

  test('but another invalid argument is not', () => {
    expect(
      shortageError(
        Object.assign(new Error('EINVAL: invalid argument, open'), { code: 'EINVAL', syscall: 'open' }),
        'x',
      ),
    ).toBeUndefined()
  })
})
