import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import type { Sandglass } from '../../src/index.ts'

const LINES = 160
/** A use of the loopback ends the sandbox with the run. Most of the output is then still on its way. */
const SCRIPT = `
import socket
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname()).close()
for number in range(${LINES}):
    print(number, "x" * 3000, flush=True)
emit_result(42)
`

/** Asserts that a caller which reads slowly gets all of a run whose sandbox ends with it. */
export async function readSlowly(sandglass: Sandglass): Promise<void> {
  const { status, finalData, stdout, sandbox } = await sandglass.run(SCRIPT, { onEvent: () => sleep(10) })
  expect([status, finalData, stdout.split('\n').length - 1]).toEqual(['completed', 42, LINES])
  expect((await sandglass.run('emit_result(1)')).sandbox.id).not.toBe(sandbox.id)
}
