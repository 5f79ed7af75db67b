#include "backend/cuda/cuda_failure.h"

#include <fmt/format.h>

#include <algorithm>

#include "backend/backend.h"

namespace thimble {
namespace {

constexpr int64_t kMiB = 1 << 20;

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// The largest budget worth trying: the libraries' code and recorded steps come after the arena.
Bytes budget_within(Bytes room) {
  const int64_t kept = std::min(room.count / 8, 512 * kMiB);
  return Bytes((room.count - kept) / kMiB * kMiB);
}

}  // namespace

bool is_lost(cudaError_t status) {
  switch (status) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorAssert:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

std::string failure_text(cudaError_t status, std::string_view what, int driver) {
  const std::string failed = fmt::format("the GPU failed at {}: {} ({})", what,
                                         cudaGetErrorString(status), cudaGetErrorName(status));
  if (is_lost(status)) {
    return failed +
           "; the card is lost to this process: look at it with nvidia-smi and run again; if it "
           "fails at the same place, please report it, with what dmesg says of Xid";
  }
  switch (status) {
    case cudaErrorInsufficientDriver:
      if (driver > 0) {
        return fmt::format(
            "the GPU's driver is too old: it knows CUDA {}, this build wants {}; update the "
            "driver, or use --device cpu",
            version_text(driver), version_text(CUDART_VERSION));
      }
      [[fallthrough]];
    case cudaErrorNoDevice:
    case cudaErrorStubLibrary:
      return "there is no CUDA device here; train with --device cpu, or plan with --device null";
    case cudaErrorCallRequiresNewerDriver:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
      return fmt::format("{}; its driver does not go with CUDA {}: update it, or use --device cpu",
                         failed, version_text(CUDART_VERSION));
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
      return failed +
             "; this build has no code for the card: build with "
             "-DCMAKE_CUDA_ARCHITECTURES=native, or use --device cpu";
    case cudaErrorDevicesUnavailable:
    case cudaErrorDeviceAlreadyInUse:
    case cudaErrorSystemNotReady:
      return failed +
             "; see with nvidia-smi whether the card is well and whether another program has it "
             "to itself, and run again";
    default:
      return failed + "; see with nvidia-smi whether the card is well, and run again";
  }
}

std::string no_room_text(std::string_view what, Bytes asked, Bytes free, Bytes total) {
  const std::string has = total.count == 0
                              ? fmt::format("the GPU has too little free memory for {}", what)
                              : fmt::format("the GPU has {} of its {} free, too little for {}",
                                            to_string(free), to_string(total), what);
  constexpr std::string_view kOthers = "see with nvidia-smi what else uses the card";
  if (asked.count == 0) return fmt::format("{}; give a smaller --memory, or {}", has, kOthers);
  const Bytes budget = budget_within(std::min(free, asked));
  if (budget.count == 0) return fmt::format("{}; {}, or use --device cpu", has, kOthers);
  return fmt::format("{}; try --memory {}MiB, or {}", has, budget.count / kMiB, kOthers);
}

void fail_for_room(std::string_view what, Bytes asked) {
  cudaGetLastError();  // said here, so that nobody finds it later
  size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) free = total = 0;
  throw NoRoom(no_room_text(what, asked, Bytes(static_cast<int64_t>(free)),
                            Bytes(static_cast<int64_t>(total))));
}

}  // namespace thimble
