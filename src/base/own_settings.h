// Settings that one file defines and others only carry: a family of models or a data set lists a
// struct of its own, and recipes copy it without knowing its type.
#pragma once

#include <any>

namespace thimble {

class OwnSettings {
 public:
  // Whether they hold a struct of this type.
  template <class Own>
  bool has() const {
    return std::any_cast<Own>(&held_) != nullptr;
  }

  // The struct, to be changed. Usual values are made where there are none, or those of another
  // file.
  template <class Own>
  Own& of() {
    if (!has<Own>()) held_ = Own();
    return *std::any_cast<Own>(&held_);
  }

  // A copy of the struct; usual values where of() would make them.
  template <class Own>
  Own value() const {
    return has<Own>() ? *std::any_cast<Own>(&held_) : Own();
  }

  void reset() { held_.reset(); }

 private:
  std::any held_;
};

}  // namespace thimble
