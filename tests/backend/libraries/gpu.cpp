// A loaded backend, for tests of what crosses the seam to it: errors by their types, and kernels that are more than
// kernels. Compiled with everything hidden, as the CUDA backend is.
#include "backend/backend.h"
#include "backend/batchable_kernel.h"
#include "backend/cuda_library.h"
#include "backend/tunable_kernel.h"
#include "base/build_id.h"

namespace thimble {
namespace {

class ThreeWays final : public TunableKernel {
 public:
  void run(const KernelArgs&) override { throw DeviceError("lost"); }
  int variants() const override { return 3; }
  int used() const override { return used_; }
  void use(int variant) override { used_ = variant; }

 private:
  int used_ = 0;
};

class StandIn final : public Backend {
 public:
  std::string_view name() const override { return "cuda"; }
  std::string machine() const override { return "a stand-in"; }
  bool runs() const override { return true; }
  Kernel& kernel(const Signature&) override { return kernel_; }
  double seconds(const Signature&) const override { return 0; }
  std::unique_ptr<Memory> allocate(Bytes) override { throw NoRoom("no room"); }
  void copy_in(std::byte*, std::span<const std::byte>) override { user_error("a mistake"); }
  void copy_out(std::span<std::byte>, const std::byte*) override { internal_check(false, "a bug"); }
  void synchronise() override {}
  double seconds_for(const std::function<void()>& work) override {
    work();  // what the caller's function throws passes through
    return 0;
  }

 private:
  ThreeWays kernel_;
};

}  // namespace
}  // namespace thimble

extern "C" __attribute__((visibility("default"))) const thimble::CudaEntry* thimble_cuda_entry() {
  static const thimble::CudaEntry entry = {
      thimble::build_id(), [](const thimble::DeviceOptions&) -> std::unique_ptr<thimble::Backend> {
        return std::make_unique<thimble::StandIn>();
      }};
  return &entry;
}
