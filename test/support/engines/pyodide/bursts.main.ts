/*
 * A host whose one sandbox runs scripts in a row: each line of its input is their number, and each line of its output the memory of idle
 * sandboxes afterwards. It closes at the end of its input. Arguments: the directory of the snapshot, and the use of bubblewrap.
 */
import { createInterface } from 'node:readline'
import { createSandglass } from '../../../../src/index.ts'

const [cacheDir = '', box = ''] = process.argv.slice(2)
const pyodide = { cacheDir, bubblewrap: box === 'box' }
await using sg = await createSandglass({ engine: 'pyodide', pyodide, poolSize: 1, maxOverflow: 0 })
for await (const line of createInterface({ input: process.stdin })) {
  for (let n = 0; n < Number(line); n += 1) {
    const { status } = await sg.run('emit_result(1)')
    if (status !== 'completed') throw new Error(status)
  }
  process.stdout.write(`${sg.stats().idleBytes}\n`)
}
