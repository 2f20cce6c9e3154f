/**
 * A host with a persisted workspace, which its test kills: `persisting-workspace.main.ts STORE ID`. It writes files of the next number, a
 * hundred at a time, and says on stdout which number is stored: `opened N`, `synced N`.
 */
import { createSandglass } from '../../src/index.ts'
import { storeInDirectory } from '../../src/artifacts/index.ts'

const [directory = '', persist = ''] = process.argv.slice(2)
const sg = await createSandglass({ engine: 'local', poolSize: 0 })
const ws = await sg.workspace({ persist, store: storeInDirectory(directory), waitSec: 60 })
const { stdout } = await ws.exec('sh', ['-c', 'cat n/* 2>/dev/null | fold -w 8 | sort -u; ls n 2>/dev/null | wc -l'])
const [found = '', count = ''] = stdout.trim().split('\n')
// All files have one number: a state is stored as a whole.
if (!['0', '100'].includes(count === '' ? found : count)) console.log(`half ${stdout}`)
let number = count === '' ? 0 : Number(found)
console.log(`opened ${number}`)
for (;;) {
  number += 1
  await ws.put(
    Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`n/${index}`, String(number).padStart(8, '0')])),
  )
  await ws.sync()
  console.log(`synced ${number}`)
}
