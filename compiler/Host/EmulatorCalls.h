//===- EmulatorCalls.h - What emulated code calls ---------------*- C++ -*-===//
//
// The C functions that replace target operations in a thread program compiled
// for the CPU. Each acts for the lane that is running (see Emulator.h). `site`
// indexes HostProgram::sites and names the operation in a report; -1 is none.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_COMPILER_HOST_EMULATORCALLS_H
#define REPLAYJIT_COMPILER_HOST_EMULATORCALLS_H

#include <cstdint>

namespace replayjit::internal::host {

/// Special registers.
enum Sreg : int32_t { TidX = 0, LaneId = 1, CtaIdX = 2, CtaIdY = 3,
                      CtaIdZ = 4, NCtaIdX = 5, WarpId = 6 };
/// GlobalAtomic is a half of an atomic operation: no side of a race.
/// GlobalDependent is what the kernel before may still write.
enum Space : int32_t {
  Global = 0,
  Shared = 1,
  GlobalAtomic = 2,
  GlobalDependent = 3
};
enum ShuffleKind : int32_t { Bfly = 0, Idx = 1, Up = 2, Down = 3 };
/// Fragments as in the PTX ISA. A, B, C, D are arrays of 32-bit words per lane:
/// Tf32 m16n8k8: A 4, B 2, C/D 4 floats. Bf16/F16 m16n8k16: A 4 (packed
/// pairs), B 2, C/D 4 floats.
enum MmaKind : int32_t { MmaTf32 = 0, MmaBf16 = 1, MmaF16 = 2 };

extern "C" {
int32_t replayjit_emu_sreg(int32_t sreg);

/// Copies `bytes` from `src` in `space` to the lane's own memory at `dst`.
/// Shared addresses are host pointers into `replayjit_emu_shared`.
void replayjit_emu_load(void *dst, const void *src, int32_t bytes,
                        int32_t space, int32_t site);
void replayjit_emu_store(void *dst, const void *src, int32_t bytes,
                         int32_t space, int32_t site);

/// shfl.sync.{bfly,idx,up,down}.b32 over the full width of a warp.
int32_t replayjit_emu_shuffle(int32_t mask, int32_t value, int32_t offset,
                              int32_t kind, int32_t site);
/// redux-style vote: bit i is lane i's predicate (vote.sync.ballot).
int32_t replayjit_emu_ballot(int32_t mask, int32_t predicate, int32_t site);
/// mma.sync.aligned with row-major A and column-major B.
void replayjit_emu_mma(int32_t kind, const void *a, const void *b,
                       const void *c, void *d, int32_t site);
/// bar.sync id, threads; threads = -1 means the whole block.
void replayjit_emu_barrier(int32_t id, int32_t threads, int32_t site);
void replayjit_emu_warp_barrier(int32_t mask, int32_t site);

/// cp.async of `bytes` (4, 8 or 16), commit_group, wait_group n.
void replayjit_emu_async_copy(void *shared, const void *global, int32_t bytes,
                              int32_t site);
void replayjit_emu_async_commit(int32_t site);
void replayjit_emu_async_wait(int32_t pending, int32_t site);

/// mbarrier.init / arrive / arrive.expect_tx / a try_wait loop that returns
/// once the phase with `parity` has completed.
void replayjit_emu_mbarrier_init(void *mbarrier, int32_t count, int32_t site);
void replayjit_emu_mbarrier_arrive(void *mbarrier, int32_t site);
void replayjit_emu_mbarrier_expect(void *mbarrier, int32_t bytes, int32_t site);
void replayjit_emu_mbarrier_wait(void *mbarrier, int32_t parity, int32_t site);
/// cp.async.bulk.shared.global with mbarrier completion. `space` is that of
/// `global`.
void replayjit_emu_bulk_copy(void *shared, const void *global, int32_t bytes,
                             void *mbarrier, int32_t space, int32_t site);

/// The kernel before may still run, until the lane has waited for it.
void replayjit_emu_start_early(int32_t site);
/// griddepcontrol.wait
void replayjit_emu_await_predecessor(int32_t site);

/// The kernel ends the launch.
void replayjit_emu_trap(int32_t site);

/// The running block's dynamic shared memory (256 KiB, 1 KiB aligned). The
/// thread program's `global_smem` symbol resolves to it.
extern unsigned char replayjit_emu_shared[];
}

} // namespace replayjit::internal::host

#endif
