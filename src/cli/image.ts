import { buildImage } from '../engines/docker/index.ts'
import type { Given } from './args.ts'
import { type Context, note } from './context.ts'
import { EXIT } from './exit-codes.ts'
import { UsageError } from './failure.ts'

/** `sandglass image build`: an image with Python where none can be pulled. Resolves to the exit code. */
export async function image(given: Given, context: Context): Promise<number> {
  const [action, ...others] = given.positionals
  if (action !== 'build' || others.length > 0) {
    const what = action === undefined ? 'nothing' : JSON.stringify(given.positionals.join(' '))
    throw new UsageError('invalid_request', `image can do one thing, and was asked for ${what}: sandglass image build`)
  }
  const started = performance.now()
  const [tag, suite, mirror] = ['--tag', '--suite', '--mirror'].map((flag) => given.last(flag))
  const built = await buildImage({
    ...(tag === undefined ? {} : { tag }),
    ...(suite === undefined ? {} : { suite }),
    ...(mirror === undefined ? {} : { mirror }),
    fresh: given.has('--fresh'),
    signal: context.signal,
    onProgress: (line) => void note(context, line),
  })
  const { sizeBytes, ...same } = built
  const durationMs = Math.round(performance.now() - started)
  if (given.has('--json')) {
    await context.stdout.line({ v: 1, type: 'image', ...same, size_bytes: sizeBytes, duration_ms: durationMs })
  } else {
    const what = `${Math.round(sizeBytes / 1e6)} MB, Python ${built.python}, ${built.suite} for ${built.architecture}`
    await context.stdout.write(`${built.tag}  ${what}, in ${(durationMs / 1000).toFixed(1)} s\n`)
  }
  return EXIT.ok
}
