#include "backend/cpu/cpu_backend.h"

#include <sys/mman.h>

#include <chrono>
#include <cstring>
#include <unordered_map>

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/library_heap.h"
#include "backend/cpu/team.h"
#include "backend/roofline.h"
#include "base/error.h"
#include "base/host/process.h"

namespace thimble {
namespace {

constexpr std::string_view kName = "cpu";

// Pages straight from the system: untouched ones cost nothing, and the size is exactly the plan's.
class MappedMemory final : public Memory {
 public:
  explicit MappedMemory(Bytes size) : size_(size) {
    if (size.count == 0) return;
    void* mapped = mmap(nullptr, static_cast<size_t>(size.count), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    user_check(mapped != MAP_FAILED, "the system has no {} for the arena; give a smaller --memory",
               to_string(size));
    base_ = static_cast<std::byte*>(mapped);
    madvise(base_, static_cast<size_t>(size.count), MADV_HUGEPAGE);
  }
  ~MappedMemory() override {
    if (base_ != nullptr) munmap(base_, static_cast<size_t>(size_.count));
  }
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;

  std::byte* base() override { return base_; }
  Bytes size() const override { return size_; }

 private:
  Bytes size_;
  std::byte* base_ = nullptr;
};

class ReferenceKernel final : public Kernel {
 public:
  explicit ReferenceKernel(const Signature& signature) : op_(signature.op) {
    name = op_->view ? "view" : "reference";
    if (op_->reference_workspace != nullptr) workspace = op_->reference_workspace(signature);
  }
  void run(const KernelArgs& args) override {
    if (!op_->view) op_->reference(args);
  }

 private:
  const OpDef* op_;
};

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(int threads) : team_(threads) {
    model_.flops_per_second = 40e9 * team_.size();
    model_.bytes_per_second = 8e9;
    model_.launch_seconds = 2e-6;
  }

  std::string_view name() const override { return kName; }
  std::string machine() const override {
    const int threads = team_.size();
    return fmt::format("{}, {} {}", cpu_model(), threads, threads == 1 ? "thread" : "threads");
  }
  bool runs() const override { return true; }

  Kernel& kernel(const Signature& signature) override {
    std::unique_ptr<Kernel>& slot = kernels_[signature];
    if (slot == nullptr) {
      team_.enter();
      for (const CpuKernel* candidate : all_cpu_kernels()) {
        if (candidate->op == signature.op->name) slot = candidate->make(signature);
      }
      if (slot == nullptr) slot = std::make_unique<ReferenceKernel>(signature);
    }
    return *slot;
  }

  void keep_kernels(const std::unordered_set<Signature, SignatureHash>& used) override {
    std::erase_if(kernels_, [&](const auto& kernel) { return !used.contains(kernel.first); });
  }

  double seconds(const Signature& signature) const override { return model_.seconds(signature); }
  std::unique_ptr<Memory> allocate(Bytes size) override {
    return std::make_unique<MappedMemory>(size);
  }
  void copy_in(std::byte* to, std::span<const std::byte> from) override {
    std::memcpy(to, from.data(), from.size());
  }
  void copy_out(std::span<std::byte> to, const std::byte* from) override {
    std::memcpy(to.data(), from, to.size());
  }
  void synchronise() override {}
  double seconds_for(const std::function<void()>& work) override {
    team_.enter();
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  void begin_step() override {
    team_.begin_step();
    enter_step();
  }
  void end_step() override {
    leave_step();
    team_.end_step();
  }

 private:
  const Team team_;
  Roofline model_;
  std::unordered_map<Signature, std::unique_ptr<Kernel>, SignatureHash> kernels_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(int threads) {
  return std::make_unique<CpuBackend>(threads);
}

extern const DeviceDef device_cpu{.name = kName, .make = [](const DeviceOptions& options) {
                                    return make_cpu_backend(options.threads);
                                  }};

}  // namespace thimble
