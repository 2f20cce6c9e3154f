/**
 * Measures one entrance in a process of its own: `node --expose-gc measure.main.ts NAME REPETITIONS`; prints a line of JSON. With
 * `memory` in place of the number, the growth of memory alone.
 */
import { ENTRANCES } from './entrances.ts'
import { measureMemory, measureStalls } from './measure.ts'

const [name, repetitions] = process.argv.slice(2)
const entrance = ENTRANCES.find((one) => one.name === name)
if (entrance === undefined) throw new TypeError(`there is no entrance ${JSON.stringify(name)}`)
const measured =
  repetitions === 'memory' ? await measureMemory(entrance) : await measureStalls(entrance, Number(repetitions))
console.log(JSON.stringify(measured))
