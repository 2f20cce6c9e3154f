/**
 * Measures one entry point in a process of its own: `node --expose-gc measure.main.ts NAME REPETITIONS`; prints a line of JSON. With
 * `memory` in place of the number, the growth of memory alone.
 */
import { ENTRY_POINTS } from './entry-points.ts'
import { measureMemory, measureStalls } from './measure.ts'

const [name, repetitions] = process.argv.slice(2)
const entryPoint = ENTRY_POINTS.find((one) => one.name === name)
if (entryPoint === undefined) throw new TypeError(`there is no entry point ${JSON.stringify(name)}`)
const measured =
  repetitions === 'memory' ? await measureMemory(entryPoint) : await measureStalls(entryPoint, Number(repetitions))
console.log(JSON.stringify(measured))
