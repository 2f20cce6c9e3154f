/** Saves and deletes artifacts until it is killed, and says on stdout what was acknowledged: `saved NAME VERSION SHA256`. */
import { createHash, randomBytes, randomInt } from 'node:crypto'
import { writeSync } from 'node:fs'
import { createArtifactService, storeInDirectory } from '../../src/artifacts/index.ts'

const NAMES = ['a', 'b.txt', 'out/c.csv']
const MAX_BYTES = 300_000

const [directory = ''] = process.argv.slice(2)
const artifacts = createArtifactService(storeInDirectory(directory))
for (;;) {
  const name = NAMES[randomInt(NAMES.length)] ?? ''
  const content = randomBytes(randomInt(MAX_BYTES))
  const { version } = await artifacts.save(name, content)
  say(`saved ${name} ${version} ${createHash('sha256').update(content).digest('hex')}`)
  if (randomInt(4) !== 0) continue
  say(`deleting ${name} ${version}`)
  if ((await artifacts.delete(name, { version })).length === 1) say(`deleted ${name} ${version}`)
}

function say(line: string): void {
  writeSync(1, `${line}\n`)
}
