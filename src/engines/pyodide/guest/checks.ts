import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { hostname, networkInterfaces, userInfo } from 'node:os'
import type { GuestChecks } from './wire.ts'

/** Tries what this process is allowed to do, before scripts are locked out of it. */
export async function checkSurroundings(): Promise<GuestChecks> {
  const interfaces = Object.keys(networkInterfaces()).join(',')
  return {
    files_refused: isRefused(() => readFileSync('/')),
    processes_refused: await areProcessesRefused(),
    code_from_text_refused: isRefused(() => Reflect.construct(Function, ['return 1'])),
    environment: Object.keys(process.env).filter((name) => name !== 'PWD').length, // bubblewrap sets PWD to /
    network_refused: interfaces === 'lo' || (await networkRefused()), // nothing listens on its own loopback
    interfaces,
    hostname: hostname(),
    own_pid: process.pid,
    users_hidden: areUsersHidden(),
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

async function areProcessesRefused(): Promise<boolean> {
  const { spawnSync } = await import('node:child_process')
  return isRefused(() => spawnSync('/nonexistent'))
}

/** True if the machine's list of users cannot be read; Node's permissions do not cover it. */
function areUsersHidden(): boolean {
  try {
    userInfo()
    return false
  } catch {
    return true
  }
}

/** True if not even this machine's own addresses can be reached. */
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
