/**
 * A host whose kernel gives activities no domains of their own: started by `without-landlock.py`. It attacks one activity from
 * another, and prints what came of that.
 */
import { createSandglass } from '../../src/index.ts'
import { SandglassError } from '../../src/errors/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

/** What such a host prints. */
export interface WeakReport {
  readonly trust: string
  /** What the report says of it. */
  readonly apart: unknown
  /** What a program can open of processes outside of its activity. */
  readonly opened: readonly string[]
  /** The codes of errors of a script and of a program with secrets, beside the program. */
  readonly besideIt: readonly (string | undefined)[]
  /** A script with secrets when the program has ended. */
  readonly alone: string
  /** A program beside the model of a task with secrets, before each script of the task. */
  readonly whileModelThinks: readonly string[]
  /** What the program found of the secrets. */
  readonly stolen: string
  /** What a program says that may not signal all processes and the zygote, and then kills its keeper; how it ended. */
  readonly killer: readonly [string, string | null]
  /** What a neighbour of it still answers, and the processes that are left of it. */
  readonly neighbour: string
  readonly leftBehind: string
  /** The exit code of a program that kills all others, and what later activities say. */
  readonly rampage: readonly [number, string]
}

/** Opens all that it can of each process, again and again, in a daemon too, and looks for a secret in it. */
const SPY = `
import os, re, sys
SECRET = re.compile(b'[s]esame-open.{30}') # not what this source has in memory
def scan(own, held):
    for name in os.listdir('/proc'):
        if not name.isdigit() or name == own: continue
        for part, flags in (('mem', os.O_RDWR), ('environ', os.O_RDONLY), ('maps', os.O_RDONLY)):
            if (name, part) in held: continue
            try: held[name, part] = os.open(f'/proc/{name}/{part}', flags)
            except OSError: pass
def search(held):
    for (name, part), fd in held.items():
        try: data = os.read(fd, 1 << 20) if part == 'environ' else b''
        except OSError: continue
        if SECRET.search(data): open('stolen', 'ab').write(data)
        if part != 'maps': continue
        for line in os.pread(fd, 1 << 20, 0).decode().splitlines():
            start, end = (int(text, 16) for text in line.split()[0].split('-'))
            if ' rw' not in line or (name, 'mem') not in held: continue
            try: found = SECRET.findall(os.pread(held[name, 'mem'], end - start, start))
            except (OSError, OverflowError): continue
            if found: open('stolen', 'ab').write(b''.join(found))
held = {}
for _ in range(100): scan(str(os.getpid()), held)
print(sorted({part for _, part in held}), flush=True)
if os.fork(): sys.stdin.read()
os.setsid()
if os.fork(): os._exit(0)
while True:
    scan(str(os.getpid()), held)
    search(held)
`
/** Kills all that it may, last the process that owns its own tree. */
const KILLER = `
import os, signal
def tried(pid):
    try: os.kill(pid, 9)
    except OSError as error: return error.strerror
said = [tried(-1), tried(2)]
if os.fork() == 0:
    os.setsid()
    os.execlp('sleep', 'sleep', '1000')
print(said, flush=True)
os.kill(os.getppid(), signal.SIGKILL)
signal.pause()
`
/** Kills everything but its own tree. */
const RAMPAGE = `
import os
own = {os.getpid(), os.getppid()}
for name in os.listdir('/proc'):
    if name.isdigit() and int(name) not in own:
        try: os.kill(int(name), 9)
        except OSError: pass
`
const secrets = { KEY: 'sesame-open-and-nothing-else-opens-this-door' }

await using sg = await createSandglass({ engine: 'local', poolSize: 0 })
const ws = await sg.workspace()
await ws.exec('true')
const spy = await ws.start('python3', ['-c', SPY])
let opened = ''
while (!opened.includes('\n')) opened += (await spy.poll({ waitMs: 10_000 })).text
const besideIt = await Promise.all([
  ws.run('pass', { secrets }).then(() => undefined, codeOf),
  ws.exec('true', [], { secrets }).then(() => undefined, codeOf),
])
await spy.close()
const alone = await ws.run('import os, time; time.sleep(0.1); emit_result(len(os.environ["KEY"]))', { secrets })
const whileModelThinks: string[] = []
const beside = (script: string) => async (): Promise<string> => {
  whileModelThinks.push(
    await ws
      .exec('true')
      .then(() => 'free', codeOf)
      .then(String),
  )
  return script
}
for (const mode of ['interactive', 'plan'] as const) {
  const model = scriptedModel(beside('raise ValueError'), beside('emit_result(1)'))
  await sg.solve('One', { model, mode, workspace: ws, secrets })
}
const stolen = (await ws.exec('sh', ['-c', 'cat stolen || true'])).stdout
await using cat = await ws.start('cat')
const killer = await ws.exec('python3', ['-c', KILLER])
await cat.write('here')
const neighbour = (await cat.poll({ waitMs: 10_000 })).text
const leftBehind = (await ws.exec('sh', ['-c', 'cat /proc/[0-9]*/comm | grep sleep || true'])).stdout
const rampage = await ws.exec('python3', ['-c', RAMPAGE])
await cat.exited // it is lost, and settles
const afterwards = (await ws.exec('echo', ['on'])).stdout + (await ws.run('print("on")')).stdout
console.log(
  JSON.stringify({
    trust: ws.trust,
    apart: (await sg.report()).probes['activities_apart'],
    opened: JSON.parse(opened.replaceAll("'", '"')) as string[],
    besideIt,
    alone: `${alone.status} ${String(alone.finalData)}`,
    whileModelThinks,
    stolen,
    killer: [killer.stdout, killer.signal],
    neighbour,
    leftBehind,
    rampage: [rampage.exitCode, afterwards],
  } satisfies WeakReport),
)

function codeOf(error: unknown): string {
  return error instanceof SandglassError ? error.code : String(error)
}
