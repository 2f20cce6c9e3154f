/* A host that runs a loop until it is killed. Arguments: the directory of the snapshot, the script, and the use of bubblewrap. */
import { createSandglass } from '../../../../src/index.ts'

const [cacheDir = '', script = '', box = ''] = process.argv.slice(2)
const sg = await createSandglass({ engine: 'pyodide', pyodide: { cacheDir, bubblewrap: box === 'box' }, poolSize: 1 })
await sg.run(script, {
  limits: { executionTimeoutSec: 600 },
  onEvent: (event) => {
    if (event.type === 'log') process.stdout.write(`${sg.engine}\n`)
  },
})
