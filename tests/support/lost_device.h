// A device that works like another until it is lost: from then on every copy fails.
#pragma once

#include <limits>

#include "backend/backend.h"

namespace thimble {

class LostDevice final : public Backend {
 public:
  // `remote`: the host reaches its arena by copies only.
  explicit LostDevice(Backend& whole, bool remote = false) : whole_(whole), remote_(remote) {}

  void lose_after(int copies) { copies_ = copies; }

  std::string_view name() const override { return "lost"; }
  std::string machine() const override { return "none"; }
  bool runs() const override { return true; }
  bool has_device_memory() const override { return remote_; }
  Kernel& kernel(const Signature& signature) override { return whole_.kernel(signature); }
  double seconds(const Signature& signature) const override { return whole_.seconds(signature); }
  std::unique_ptr<Memory> allocate(Bytes size) override { return whole_.allocate(size); }
  void copy_in(std::byte* to, std::span<const std::byte> from) override {
    count();
    whole_.copy_in(to, from);
  }
  void copy_out(std::span<std::byte> to, const std::byte* from) override {
    count();
    whole_.copy_out(to, from);
  }
  void synchronise() override {}
  double seconds_for(const std::function<void()>& work) override {
    return whole_.seconds_for(work);
  }

 private:
  void count() {
    if (copies_ == 0) throw DeviceError("the card is lost");
    --copies_;
  }

  Backend& whole_;
  const bool remote_;
  int copies_ = std::numeric_limits<int>::max();
};

}  // namespace thimble
