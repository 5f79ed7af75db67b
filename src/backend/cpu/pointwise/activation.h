// The activations that bias_act fuses, as loops that vectorise: the kind is chosen outside of them.
#pragma once

#include "backend/cpu/pointwise/vector_math.h"
#include "base/error.h"
#include "graph/attrs.h"

namespace thimble {

// Calls body(map), where map(z) is the activation named by attrs `act`.
template <class Body>
THIMBLE_INLINE void with_activation(const Attrs& attrs, const Body& body) {
  const std::string_view act = attrs.text("act", "none");
  if (act == "relu") {
    body([](float z) { return z <= 0 ? 0 : z; });
  } else if (act == "sigmoid") {
    body([](float z) { return vector_sigmoid(z); });
  } else if (act == "tanh") {
    body([](float z) { return vector_tanh(z); });
  } else if (act == "leaky_relu") {
    const auto slope = static_cast<float>(attrs.real("slope", 0.01));
    body([=](float z) { return z > 0 ? z : slope * z; });
  } else {
    body([](float z) { return z; });
  }
}

// Calls body(map), where map(y, dy) is the gradient before the activation, y its result.
template <class Body>
THIMBLE_INLINE void with_activation_gradient(const Attrs& attrs, const Body& body) {
  const std::string_view act = attrs.text("act", "none");
  if (act == "relu") {
    body([](float y, float dy) { return y > 0 ? dy : 0; });
  } else if (act == "sigmoid") {
    body([](float y, float dy) { return dy * (y * (1 - y)); });
  } else if (act == "tanh") {
    body([](float y, float dy) { return dy * (1 - y * y); });
  } else if (act == "leaky_relu") {
    const auto slope = static_cast<float>(attrs.real("slope", 0.01));
    body([=](float y, float dy) { return y > 0 ? dy : slope * dy; });
  } else {
    body([](float, float dy) { return dy; });
  }
}

}  // namespace thimble
