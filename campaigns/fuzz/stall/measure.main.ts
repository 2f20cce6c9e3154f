/** Measures one entrance in a process of its own: `node --expose-gc measure.main.ts NAME REPETITIONS`; prints a line of JSON. */
import { ENTRANCES } from './entrances.ts'
import { measureStalls } from './measure.ts'

const [name, repetitions] = process.argv.slice(2)
const entrance = ENTRANCES.find((one) => one.name === name)
if (entrance === undefined) throw new TypeError(`there is no entrance ${JSON.stringify(name)}`)
console.log(JSON.stringify(await measureStalls(entrance, Number(repetitions))))
