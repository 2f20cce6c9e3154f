import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { allProcesses, processOf } from '../../../support/processes.ts'
import { sharedCache } from '../../../support/engines/pyodide/shared-cache.ts'

const MAIN = join(import.meta.dirname, '../../../support/engines/pyodide/host.main.ts')
const cache = sharedCache()
afterAll(() => cache[Symbol.dispose]())

test.skipIf(process.platform !== 'linux')('a guest inherits no descriptor of the host', async () => {
  const program = `import os, sys
os.dup2(os.open('/etc/passwd', os.O_RDONLY), 200)
os.dup2(os.open('/etc', os.O_RDONLY), 207)
os.execv(sys.argv[1], sys.argv[1:])`
  const command = [process.execPath, '--no-warnings', MAIN, cache.path, 'emit_log("up")\nwhile True: pass', 'open']
  const host = spawn('/usr/bin/python3', ['-c', program, ...command], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    await once(host.stdout, 'data')
    expect(linkOf(host.pid, 200)).toBe('/etc/passwd')
    const guests = allProcesses().filter(({ parent }) => parent === host.pid)
    const links = guests.flatMap(({ pid }) => linksOfGuest(pid))
    expect(links.length).toBeGreaterThan(0)
    expect(links).toEqual(links.map(() => ['/dev/null', '/dev/null']))
  } finally {
    host.kill('SIGKILL')
    await once(host, 'exit')
  }
})

/** The targets of both descriptors in a guest; nothing if it has ended. */
function linksOfGuest(pid: number): string[][] {
  try {
    return [[linkOf(pid, 200), linkOf(pid, 207)]]
  } catch (error) {
    if (processOf(pid) !== undefined) throw error
    return []
  }
}

function linkOf(pid: number | undefined, fd: number): string {
  return readlinkSync(`/proc/${pid}/fd/${fd}`)
}
