import { commandLineOf, descendantsOf } from '../../test/support/processes.ts'
import { describeProcess, filesLeft, mountsOf, orphansOf, type Place, withoutEmpty, type Remains } from './remains.ts'
import type { WatchedEngine } from './watched-engine.ts'

/** The processes that instances of the engine `pyodide` left; their command lines, and those of their bubblewrap, contain the sandbox id. */
export function pyodideRemains(
  place: Place,
  { living }: Pick<WatchedEngine, 'living'>,
  host: number = process.pid,
): Promise<Remains> {
  const ids = [...living.keys()]
  const strangers = descendantsOf(host).filter((pid) => {
    const line = commandLineOf(pid) // empty for a zombie
    return line !== '' && !ids.some((id) => line.includes(id))
  })
  return Promise.resolve(
    withoutEmpty({
      processes: [...strangers.map((pid) => `${pid} ${describeProcess(pid)}`), ...orphansOf(place.directory, host)],
      mounts: mountsOf([place.directory]),
      files: filesLeft(place, ids),
    }),
  )
}
