import { randomUUID } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import { allProcesses, commandLineOf } from '../../test/support/processes.ts'
import { type Driver, type Home, SECRET } from './driver.ts'
import type { MeasuredRow, Seen } from './result.ts'

const DIRECTORIES = ['.', '/tmp', '/var/tmp', '/dev/shm']

/** The traces of a first run that a second run, of another user, sees with the peer's default reuse. */
export async function leaks(driver: Driver, home: Home): Promise<MeasuredRow['leaks']> {
  const mark = randomUUID().slice(0, 8)
  const name = `sg-peers-${mark}.txt`
  const span = `86399.${Number.parseInt(mark, 16)}`
  try {
    return {
      variable: await twoRuns(driver, `leaked_${mark} = "${mark}"\nprint("left")`, `print(leaked_${mark})`, mark),
      file: await twoRuns(
        driver,
        `import os
for place in ${JSON.stringify(DIRECTORIES)}:
    try:
        with open(os.path.join(place, "${name}"), "w") as file:
            file.write("${mark}")
        print("left in", place)
    except OSError:
        pass`,
        `import os
for place in ${JSON.stringify(DIRECTORIES)}:
    path = os.path.join(place, "${name}")
    if os.path.exists(path):
        print(open(path).read(), "in", place)`,
        mark,
      ),
      process: await twoRuns(
        driver,
        `import subprocess
subprocess.Popen(["sleep", "${span}"], start_new_session=True, stdin=-3, stdout=-3, stderr=-3)
print("left")`,
        `import os
for pid in os.listdir("/proc"):
    try:
        with open("/proc/" + pid + "/cmdline") as file:
            words = file.read()
    except OSError:
        continue
    if words.startswith("sleep") and "${span}" in words:
        print("${mark} is process", pid)`,
        mark,
      ),
    }
  } finally {
    for (const place of [join(home.root, 'work'), ...DIRECTORIES.slice(1)]) rmSync(join(place, name), { force: true })
    for (const { pid } of allProcesses()) {
      if (commandLineOf(pid) === `sleep\0${span}\0`) process.kill(pid, 'SIGKILL')
    }
  }
}

async function twoRuns(driver: Driver, leave: string, look: string, mark: string): Promise<Seen> {
  const first = await driver.ask('run', { code: leave })
  if (!first.text?.includes('left')) return { seen: 'refused', said: said(first) }
  const second = await driver.ask('run', { code: look })
  return { seen: second.text?.includes(mark) === true ? 'yes' : 'no', said: said(second) }
}

/** The parts of the host that a script reaches. */
export async function exposed(
  driver: Driver,
  home: Home,
  gateway: string | undefined,
): Promise<MeasuredRow['exposed']> {
  const mark = randomUUID()
  const tmp = `/tmp/sg-peers-${mark}.txt`
  writeFileSync(tmp, SECRET, { mode: 0o644 })
  await using loopback = await listen('127.0.0.1')
  await using bridge = gateway === undefined ? undefined : await listen(gateway)
  const look = async (code: string): Promise<Seen> => {
    const answer = await driver.ask('run', { code })
    if (answer.text?.includes(SECRET) === true) return { seen: 'yes', said: '' }
    return { seen: answer.text === undefined ? 'refused' : 'no', said: said(answer) }
  }
  const file = (path: string): string => `import os
path = ${JSON.stringify(path)}
print(open(path).read() if os.path.exists(path) else "not there")`
  try {
    return {
      environment: await look('import os\nprint(os.environ.get("SECRET_CANARY"))'),
      home: await look(file(join(home.root, 'home/secret.txt'))),
      tmp: await look(file(tmp)),
      loopback: await look(connect('127.0.0.1', loopback.port)),
      gateway:
        bridge === undefined || gateway === undefined
          ? { seen: 'no', said: 'no bridge of Docker was there' }
          : await look(connect(gateway, bridge.port)),
    }
  } finally {
    rmSync(tmp, { force: true })
  }
}

function connect(host: string, port: number): string {
  return `import socket
try:
    with socket.create_connection(("${host}", ${port}), 3) as peer:
        print(peer.recv(100).decode())
except OSError as error:
    print("no connection:", error)`
}

/** Sends the secret to every connection. */
async function listen(host: string): Promise<AsyncDisposable & { port: number }> {
  const server: Server = createServer((socket) => {
    socket.on('error', () => {})
    socket.end(SECRET)
  })
  server.listen(0, host)
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    port: address.port,
    async [Symbol.asyncDispose]() {
      server.close()
      await once(server, 'close')
    },
  }
}

function said({ text, error }: { readonly text?: string; readonly error?: string }): string {
  return (error ?? text ?? '').trim().split('\n')[0]?.slice(0, 160) ?? ''
}
