/**
 * A host with a persisted workspace, which its test kills: `persisting-workspace.main.ts STORE ID sync`, or `… restore CHECKPOINT…`. All files
 * have the content of one number. It says on stdout what it is about to do and what was acknowledged, such as `syncing 7` and `synced 7`,
 * and `broken …` for files that are missing, half, or of different numbers.
 */
import { createSandglass } from '../../src/index.ts'
import { storeInDirectory } from '../../src/artifacts/index.ts'

const FILES = 60
/** Of more bytes than a store takes at once. */
const LARGE = { name: 'n/large', lines: 40_000 }
/** Emits the number of all files, 0 for none, or says what is wrong with them. */
const CHECK = `
import os
names = sorted(os.listdir('n')) if os.path.isdir('n') else []
texts = {name: open('n/' + name).read() for name in names}
number = texts.get('0', '')[:8]
expected = {str(at): number + '\\n' for at in range(${FILES})}
expected['large'] = (number + '\\n') * ${LARGE.lines}
wrong = [name for name in {**texts, **expected} if texts.get(name) != expected.get(name)]
emit_result('0' if not names else number if not wrong else f'{len(wrong)} wrong files, {sorted(wrong)[:3]}, beside {number!r}')
`

const [directory = '', persist = '', mode = 'sync', ...checkpoints] = process.argv.slice(2)
const sg = await createSandglass({ engine: 'local', poolSize: 0 })
console.log('opening -')
const ws = await sg.workspace({ persist, store: storeInDirectory(directory), waitSec: 60 })
let number = await check('opened')
if (mode === 'restore') await restore()
else for (;;) await write()

async function write(): Promise<void> {
  number += 1
  console.log(`writing ${number}`)
  const line = `${String(number).padStart(8, '0')}\n`
  const small = Array.from({ length: FILES }, (_, index) => [`n/${index}`, line])
  await ws.put(Object.fromEntries([...small, [LARGE.name, line.repeat(LARGE.lines)]]) as Record<string, string>)
  console.log(`syncing ${number}`)
  await ws.sync()
  console.log(`synced ${number}`)
}

/** Goes from one checkpoint to the other. A checkpoint is named by its number and its id. */
async function restore(): Promise<void> {
  while (checkpoints.length < 2) {
    await write()
    const { id } = await ws.checkpoint()
    checkpoints.push(`${number}:${id}`)
    console.log(`checkpoint ${number}:${id}`)
  }
  for (let turn = 0; ; turn++) {
    const [next = '', id = ''] = checkpoints[turn % checkpoints.length]?.split(':') ?? []
    console.log(`restoring ${next}`)
    await ws.restore(id)
    await check('restored')
  }
}

async function check(done: string): Promise<number> {
  const { finalData, error } = await ws.run(CHECK)
  const found = typeof finalData === 'string' ? finalData : String(error)
  console.log(/^\d+$/.test(found) ? `${done} ${Number(found)}` : `broken ${found}`)
  return Number(found)
}
