import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below those that Linux gives to whoever asks for any (`net.ipv4.ip_local_port_range`), so nobody takes one by chance. */
const FIRST = 20_000
const END = 32_768

/** A port of the loopback that is free, for a program that cannot choose one itself. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, END)
    const server = createServer().listen(port, '127.0.0.1')
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    )
    server.close()
    if (!isFree) continue
    await once(server, 'close')
    return port
  }
}
