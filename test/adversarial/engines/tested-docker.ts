import { requireDockerEngine } from '../../docker-engine.ts'
import { openEngine, stateFor } from './docker.ts'
import { containerIsHardened } from './faults/container-config.ts'
import { pausedContainerTimesOut, removedContainerIsReplaced } from './faults/containers.ts'
import { unreachableDaemonIsTold } from './faults/daemons.ts'
import { foreignLabelsAreLeftAlone, twoHostsShareADaemon } from './faults/labels.ts'
import { killedHostLeavesNothing, suspendedHostGoesOn } from './faults/lost-hosts.ts'
import { memoryKillIsTold, memoryKillOfAChildIsNoFailure } from './faults/memory-kills.ts'
import { missingFilterFailsClosed } from './faults/images.ts'
import { type LeftOut, NO_BRIDGE, type TestedEngine } from './tested.ts'

/** The docker engine, on the machine's daemon. */
export const DOCKER: TestedEngine = {
  name: 'docker',
  async ready() {
    const { skip, image } = await requireDockerEngine()
    return { skip, open: () => openEngine(stateFor(image)) }
  },
  faults: new Map([
    ['FLT-001', ({ engine }) => killedHostLeavesNothing(engine)],
    ['FLT-005', unreachableDaemonIsTold],
    ['FLT-007', ({ engine }) => memoryKillIsTold(engine)],
    ['FLT-008', ({ engine }) => memoryKillOfAChildIsNoFailure(engine)],
    ['FLT-010', removedContainerIsReplaced],
    ['FLT-011', pausedContainerTimesOut],
    ['FLT-014', missingFilterFailsClosed],
    ['FLT-023', ({ engine }) => suspendedHostGoesOn(engine)],
    ['FLT-025', foreignLabelsAreLeftAlone],
    ['FLT-026', twoHostsShareADaemon],
    ['FLT-031', containerIsHardened],
  ]),
  leftOut: new Map<string, LeftOut>([
    ...NO_BRIDGE,
    [
      'FLT-004',
      { file: 'engines/docker/daemon-faults.test.ts', test: 'FLT-004: that %s in the middle of a run: sandbox-lost' },
    ],
    ['FLT-013', { why: 'the docker engine uses no bubblewrap, and its daemon makes the namespaces' }],
    [
      'FLT-015',
      {
        file: 'engines/docker/daemon-faults.test.ts',
        test: 'refuses new containers with no_space, keeps those that run',
      },
    ],
    ['FLT-016', { why: 'the docker engine has no state directory' }],
  ]),
}
