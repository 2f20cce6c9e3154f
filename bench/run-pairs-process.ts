/** Runs a script with the Sandglass of a directory for each message of its parent, and answers the milliseconds: see run-pairs.ts. */
import { pathToFileURL } from 'node:url'
import type * as Library from '../src/index.ts'
import { measureMs } from './measure.ts'

const [directory = '', block = '', script = ''] = process.argv.slice(2)
const count = Number(block)
const { createSandglass } = (await import(pathToFileURL(`${directory}/src/index.ts`).href)) as typeof Library
const sg = await createSandglass({ engine: 'local', poolSize: 1, maxOverflow: 0, maxUses: 1_000_000 })
process.on('disconnect', () => void sg.close())
process.on('message', () => {
  void measureMs(runBlock).then((ms) => process.send?.(ms / count))
})
process.send?.(0)

async function runBlock(): Promise<void> {
  for (let run = 0; run < count; run += 1) await sg.run(script)
}
