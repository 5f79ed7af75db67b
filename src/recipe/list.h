// The list itself, for those who put together views of it.
#pragma once

#include <functional>

#include "recipe/recipe.h"

namespace thimble {

// Lists every field of the recipe; `list_own` those of its model, in their place. `sequences`: the
// model reads such.
void list_fields(Recipe& recipe, Fields& fields, bool sequences,
                 const std::function<void(Fields&)>& list_own);

}  // namespace thimble
