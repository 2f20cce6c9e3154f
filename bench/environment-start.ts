import { createSandglass } from './subject.ts'

// Prints how long createSandglass takes in a fresh process: with a named environment of the cache, or without packages.
const [cacheDir = '', ...dependencies] = process.argv.slice(2)
const start = performance.now()
const sg = await createSandglass({
  engine: 'local',
  poolSize: 1,
  dependencies,
  environments: { cacheDir, offline: true },
})
const taken = performance.now() - start
await sg.close()
process.stdout.write(`${taken}\n`)
