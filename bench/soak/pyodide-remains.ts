import { commandLineOf, descendantsOf } from '../../test/support/processes.ts'
import { described, filesLeft, mountsOf, orphansOf, type Place, present, type Remains } from './remains.ts'
import type { WatchedEngine } from './watched-engine.ts'

/** What instances of the engine `pyodide` left: their command lines, and those of their boxes, name the sandbox. */
export function pyodideRemains(
  place: Place,
  { living }: Pick<WatchedEngine, 'living'>,
  host: number = process.pid,
): Promise<Remains> {
  const ids = [...living.keys()]
  const strangers = descendantsOf(host).filter((pid) => {
    const line = commandLineOf(pid) // of a zombie, empty
    return line !== '' && !ids.some((id) => line.includes(id))
  })
  return Promise.resolve(
    present({
      processes: [...strangers.map((pid) => `${pid} ${described(pid)}`), ...orphansOf(place.directory, host)],
      mounts: mountsOf([place.directory]),
      files: filesLeft(place, ids),
    }),
  )
}
