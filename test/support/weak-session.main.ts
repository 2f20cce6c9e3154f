/** A session on a kernel without Landlock, as lines of JSON: whether it survives, and what its neighbours may do. */
import { createSandglass } from '../../src/index.ts'

const codeOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'none',
    ({ code }: { code: string }) => code,
  )

await using sg = await createSandglass({ engine: 'local', poolSize: 0 })
await using ws = await sg.workspace()
const session = await ws.session()
await session.run('import subprocess\nx = 1')
const alone = await session.run('import os\nlen(os.environ["KEY"])', { secrets: { KEY: 'sesame-open' } })
const branch = (await session.branch(1))[0]
const broken = await session.run(
  'p = subprocess.Popen(["sleep", "1000"], start_new_session=True)\nx = 2\nwhile True: pass',
  { timeoutSec: 0.3 },
)
const bomb = await session.run('while True:\n    try: os.fork()\n    except OSError: pass', { timeoutSec: 0.3 })
const besideIt = await codeOf(ws.exec('true', [], { secrets: { KEY: 'sesame-open' } }))
const kept = [(await session.run('x')).value, (await branch?.run('x'))?.value]
await branch?.close()
await session.close()
const left = await ws.exec('sh', ['-c', 'cat /proc/[0-9]*/comm | grep -c sleep'])
console.log(
  JSON.stringify({
    trust: ws.trust,
    secret: alone.value,
    states: [broken.state, bomb.state],
    ended: broken.ended,
    besideIt,
    kept,
    left: left.stdout.trim(),
  }),
)
