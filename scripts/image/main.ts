/**
 * Makes `sandglass-python:latest` on the Docker daemon at DOCKER_HOST, for tests, benches and examples (`npm run image`).
 * `--fresh` fetches the packages again. The first build needs root, debootstrap and a mirror of Debian.
 */
import { parseArgs } from 'node:util'
import { messageOf } from '../../src/errors/index.ts'
import { buildImage } from './build.ts'

const { values } = parseArgs({ options: { fresh: { type: 'boolean', default: false } } })
const interruption = new AbortController()
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => interruption.abort(name))
try {
  const { tag, sizeBytes, python } = await buildImage({
    fresh: values.fresh,
    onProgress: (line) => console.error(line),
    signal: interruption.signal,
  })
  console.log(`${tag}  ${Math.round(sizeBytes / 1e6)} MB, Python ${python}`)
} catch (error) {
  console.error(messageOf(error))
  process.exitCode = 1
}
