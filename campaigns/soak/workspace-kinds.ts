import { createHash } from 'node:crypto'
import { SandglassError, type Workspace } from '../../src/index.ts'
import type { Random } from '../../test/support/random.ts'
import { type Kind, type RunContext, short } from './kind.ts'

/** Workspaces: activities that end by themselves, are stopped, try to outlive their end, or lose their sandbox. */
export const WORKSPACE_KINDS: readonly Kind[] = [
  { name: 'workspace of several activities', weight: 3, needs: 'workspaces', run: runActivities },
  { name: 'workspace closed over its programs', weight: 2, needs: 'workspaces', run: closeOverPrograms },
  { name: 'activities cancelled', weight: 2, needs: 'workspaces', run: cancelActivities },
  { name: 'lost workspace', weight: 1, needs: 'workspaces', run: loseWorkspace },
]

/** Answers one connection with what it was sent, in capitals. */
const SERVER = `import socket
server = socket.create_server(("127.0.0.1", 7000))
print("ready", flush=True)
while True:
    connection, _ = server.accept()
    with connection: connection.sendall(connection.recv(100).upper())`

/** Two daemons that ignore SIGTERM, in sessions of their own. */
const DAEMONS = `trap "" TERM HUP INT
setsid sh -c 'trap "" TERM HUP; sleep 1000' &
(setsid sh -c 'trap "" TERM HUP; sleep 1000 &') &
echo ready
wait`

/** A script, a program and a server at once, with files in and out. */
async function runActivities({ sg }: RunContext, random: Random): Promise<string | undefined> {
  const data = Uint8Array.from({ length: 1 + random.below(300_000) }, () => random.below(256))
  await using workspace = await sg.workspace({ files: { 'in/data.bin': data } })
  const [server, script, sum] = await Promise.all([
    workspace.start('python3', ['-u', '-c', SERVER]),
    workspace.run(`import os
os.makedirs("out", exist_ok=True)
open("out/reversed.bin", "wb").write(open("in/data.bin", "rb").read()[::-1])
emit_result(1)`),
    workspace.exec('sha256sum', ['in/data.bin']),
  ])
  await server.poll({ waitMs: 20_000 })
  const answer = await askServer(workspace, 'hello')
  const files: string[] = []
  for await (const file of workspace.collect('out/**')) files.push(`${file.path} ${hashOf(await file.bytes())}`)
  const found = [script.finalData, sum.stdout.slice(0, 64), answer, files, server.status]
  const reversed = `out/reversed.bin ${hashOf(data.toReversed())}`
  const expected = [1, hashOf(data), 'HELLO', [reversed], 'running']
  return short(found) === short(expected) ? undefined : `${short(found)} instead of ${short(expected)}`
}

/** Leaves programs alive that do what they can to outlive the workspace. */
async function closeOverPrograms({ sg }: RunContext): Promise<string | undefined> {
  const workspace = await sg.workspace()
  try {
    const daemons = await workspace.start('sh', ['-c', DAEMONS])
    const terminal = await workspace.start('sh', ['-c', 'sleep 1000 & echo ready; cat'], { tty: true })
    const texts = await Promise.all([daemons, terminal].map(async (one) => (await one.poll({ waitMs: 20_000 })).text))
    return texts.every((text) => text.startsWith('ready')) ? undefined : `output: ${short(texts)}`
  } finally {
    await workspace.close()
  }
}

/** Stops a program whose output nobody reads, and leaves a file half read; the workspace goes on. */
async function cancelActivities({ sg }: RunContext, random: Random): Promise<string | undefined> {
  await using workspace = await sg.workspace()
  const flood = await workspace.start('sh', ['-c', 'head -c 8000000 /dev/zero > big; exec cat /dev/zero'])
  await flood.poll({ waitMs: 20_000 })
  for await (const piece of workspace.read('big')) if (piece.length > 0) break
  const abort = new AbortController()
  const timer = setTimeout(() => abort.abort(), random.below(200))
  try {
    await workspace.exec('sleep', ['1000'], { signal: abort.signal })
    return 'a cancelled program ended by itself'
  } catch (error) {
    if (!hasCode(error, 'aborted')) return String(error)
  } finally {
    clearTimeout(timer)
  }
  const { signal } = await flood.kill()
  const { stdout } = await workspace.exec('echo', ['on'])
  return signal !== null && stdout === 'on\n' ? undefined : short({ signal, stdout })
}

/** Kills the broker of a workspace under a program. */
async function loseWorkspace({ sg, killSandbox }: RunContext): Promise<string | undefined> {
  await using workspace = await sg.workspace()
  const program = await workspace.start('sleep', ['1000'])
  killSandbox(workspace.id)
  try {
    await program.exited
    return 'the program ended by itself'
  } catch (error) {
    return hasCode(error, 'workspace_lost') ? undefined : String(error)
  }
}

async function askServer(workspace: Workspace, text: string): Promise<string> {
  const connection = workspace.dial(7000)
  connection.end(text)
  let answer = ''
  for await (const data of connection) answer += String(data)
  return answer
}

function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof SandglassError && error.code === code
}
