#include "backend/null/null_backend.h"

#include "backend/roofline.h"
#include "base/error.h"

namespace thimble {
namespace {

constexpr std::string_view kName = "null";

// A large data-centre GPU in round figures; only ratios matter here.
constexpr Roofline kModel = {
    .flops_per_second = 50e12, .bytes_per_second = 3e12, .launch_seconds = 2e-6};

class NullKernel final : public Kernel {
 public:
  NullKernel() { name = "none"; }
  void run(const KernelArgs&) override { internal_check(false, "the null device runs nothing"); }
};

class NullBackend final : public Backend {
 public:
  std::string_view name() const override { return kName; }
  std::string machine() const override { return "none"; }
  bool runs() const override { return false; }
  Kernel& kernel(const Signature&) override { return kernel_; }
  double seconds(const Signature& signature) const override { return kModel.seconds(signature); }
  std::unique_ptr<Memory> allocate(Bytes) override {
    user_error("the null device only plans; train with --device cpu");
  }
  void copy_in(std::byte*, std::span<const std::byte>) override {}
  void copy_out(std::span<std::byte>, const std::byte*) override {}
  void synchronise() override {}
  double seconds_for(const std::function<void()>&) override { return 0; }

 private:
  NullKernel kernel_;
};

}  // namespace

extern const DeviceDef device_null{.name = kName,
                                   .make = [](const DeviceOptions&) -> std::unique_ptr<Backend> {
                                     return std::make_unique<NullBackend>();
                                   },
                                   .traits = {.runs = false}};

}  // namespace thimble
