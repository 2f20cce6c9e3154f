import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { programsNamed } from '../../src/support/index.ts'
import type { S3StoreOptions } from '../../src/stores/index.ts'
import { eventually } from './eventually.ts'
import { freePort } from './free-port.ts'

const PROGRAM = 'moto_server'
const START_MS = 20_000

/** The server on this machine; undefined without it (`pip install 'moto[s3]' flask flask-cors`). */
export function findS3Server(): string | undefined {
  return programsNamed(PROGRAM)[0]
}

/** A server of its own on the loopback, with a bucket. */
export interface S3Server extends AsyncDisposable {
  readonly options: S3StoreOptions
}

/** Starts moto, which keeps its buckets in memory. */
export async function startS3Server(program: string): Promise<S3Server> {
  const port = await freePort()
  const child = spawn(program, ['-H', '127.0.0.1', '-p', String(port)], { stdio: 'ignore' })
  const endpoint = `http://127.0.0.1:${port}`
  const problem = await eventually(async () => {
    if (child.exitCode !== null) throw new Error(`${program} ended with ${child.exitCode}`)
    return fetch(`${endpoint}/store`, { method: 'PUT' }).then(
      ({ ok, status }) => (ok ? undefined : `it answers ${status}`),
      (error: unknown) => String(error),
    )
  }, START_MS)
  if (problem !== undefined) throw new Error(`${program} did not start: ${problem}`)
  return {
    options: { bucket: 'store', endpoint, accessKeyId: 'test', secretAccessKey: 'test' },
    async [Symbol.asyncDispose]() {
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
  }
}
