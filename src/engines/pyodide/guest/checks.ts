import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { hostname, networkInterfaces, userInfo } from 'node:os'
import type { GuestChecks } from './wire.ts'

/** What this process may do that no script should, found by trying, before anything of it is shut. */
export async function checkAround(): Promise<GuestChecks> {
  const interfaces = Object.keys(networkInterfaces()).join(',')
  return {
    files_refused: isRefused(() => readFileSync('/')),
    processes_refused: await processesRefused(),
    code_from_text_refused: isRefused(() => Reflect.construct(Function, ['return 1'])),
    environment: Object.keys(process.env).filter((name) => name !== 'PWD').length, // bubblewrap's own, which is /
    network_refused: interfaces === 'lo' || (await networkRefused()), // its own loopback has nobody on it
    interfaces,
    hostname: hostname(),
    own_pid: process.pid,
    users_hidden: usersHidden(),
  }
}

function isRefused(attempt: () => unknown): boolean {
  try {
    attempt()
    return false
  } catch (error) {
    const { code, name } = error as { code?: unknown; name?: unknown }
    return code === 'ERR_ACCESS_DENIED' || name === 'EvalError'
  }
}

async function processesRefused(): Promise<boolean> {
  const { spawnSync } = await import('node:child_process')
  return isRefused(() => spawnSync('/nonexistent'))
}

/** Whether the machine's list of users is out of reach, which is read without Node's permission to read files. */
function usersHidden(): boolean {
  try {
    userInfo()
    return false
  } catch {
    return true
  }
}

/** Whether not even this machine's own addresses can be spoken to. */
async function networkRefused(): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  try {
    const socket = connect({ host: '127.0.0.1', port: 9 })
    socket.once('connect', () => resolve(false))
    socket.once('error', (error: { code?: string }) => {
      resolve(error.code === 'ERR_ACCESS_DENIED' || error.code === 'ENETUNREACH')
    })
  } catch (error) {
    resolve((error as { code?: unknown }).code === 'ERR_ACCESS_DENIED')
  }
  return promise
}
