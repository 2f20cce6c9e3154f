/**
 * Measures one entry point in a process of its own: `node --expose-gc measure.main.ts NAME REPETITIONS`; prints a line of JSON. With
 * `memory` in place of the number, the growth of memory alone.
 */
import { setFlagsFromString } from 'node:v8'
import { ENTRY_POINTS } from './entry-points.ts'
import { measureMemory, measureStalls } from './measure.ts'

// The main heap keeps its bound; threads have their own, which the flag would replace.
setFlagsFromString('--max-semi-space-size=0')

const [name, repetitions] = process.argv.slice(2)
const entryPoint = ENTRY_POINTS.find((one) => one.name === name)
if (entryPoint === undefined) throw new TypeError(`there is no entry point ${JSON.stringify(name)}`)
const measured =
  repetitions === 'memory' ? await measureMemory(entryPoint) : await measureStalls(entryPoint, Number(repetitions))
console.log(JSON.stringify(measured))
